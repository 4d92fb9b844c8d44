"""Whether a certificate is about the reader's robot, values and log.

A file proves a statement about the numbers in it. Here the statement is computed again from the
reader's data (the robot's file, base parameters, a log, and the limits named at the prompt) and
compared part by part, by index and decimals. Coefficients of K and a triangle of data are computed,
so that another machine may round their last digits otherwise: where they differ by no more than
`ROUNDING` of themselves, the file's multipliers must prove the reader's own statement as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from feasid import certificate as checker
from feasid.core.arrays import Array
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.presolve import PresolvedQuestion
from feasid.parameters.feasibility.proof.question import HEAVIEST, ExactData, Question

ROUNDING = Fraction(1, 10**12)
"""Difference of computed coefficients, relative to each, up to which two machines may differ. A
larger value proves nothing false, because the proof is repeated with the reader's own numbers."""

FLOOR_LOSS = Fraction(1, 10**9)
"""Share of a bound that is given up where the data differ by rounding."""

CLAIMS = {
    "feasible": "that the values are feasible",
    "infeasible": "that the values are infeasible",
    "boundary": "that only singular inertias have the values",
}
"""The proved statement in words; for a bound with its number."""

Statement = Mapping[str, Any]  #: A certificate's keys, without those of its proof.


@dataclass(frozen=True, eq=False)
class HeldStatement:
    """The statement that a certificate of the reader's robot and log makes."""

    question: Question  #: Robot, constraints and K; the values unless `data` stand in their place.
    about: str  #: Description of the values or data.
    data: ExactData | None = None  #: Of a bound.

    @property
    def statement(self) -> dict[str, Any]:
        """The keys of a certificate about it, but those of the proof."""
        out = self.question.unchecked_certificate("").data
        if self.data is not None:
            out["data"] = self.data.to_certificate
        return out


@dataclass(frozen=True)
class Binding:
    """Whether a certificate is about a holding, and how to say it."""

    #: Differences; empty when the certificate proves the reader's own statement.
    refused: tuple[str, ...]
    sentence: str = ""  #: The proved statement with its conditions; empty when refused.


def bind(certificate: Certificate, holdings: Sequence[HeldStatement]) -> Binding:
    """Compare a certificate with its reader's data.

    `certificate`: it is verified here; `holdings`: it must be about one of them. Raises
    CertificateError: when the certificate proves nothing at all.
    """
    certificate.verify()
    bound = certificate.claim == "bound"
    some = [holding for holding in holdings if bound == (holding.data is not None)]
    if not some:
        what = "the data in the file" if bound else "the values in the file"
        return Binding((f"{what} were not compared with anything: pass --beta or --log",))
    bindings = []
    for holding in some:
        binding, question = _compare(certificate, holding), holding.question
        fewer = len(certificate.data["matrix"]) != len(question.rows)
        dropped: tuple[int, ...] = ()  # equations that the others imply
        if binding.refused and fewer and not bound:
            dropped = PresolvedQuestion.from_question(question).redundant_rows
        if dropped:
            which = f"of which equations {', '.join(map(str, dropped))}"
            about = f"{holding.about}, {which} agree with the others within rounding,"
            reduced = replace(holding, question=question.without_equations(dropped), about=about)
            comparison = _compare(certificate, reduced)
            binding = binding if comparison.refused else comparison
        bindings.append(binding)
    return min(bindings, key=lambda binding: len(binding.refused))


def _compare(certificate: Certificate, holding: HeldStatement) -> Binding:
    """Compare the certificate with one statement, part by part."""
    file, statement = certificate.data, holding.statement
    limits: list[Mapping[str, str] | None] = [None]
    limits += [holding.question.size_limits(mass) for mass in HEAVIEST]
    names = [".".join(name) for name in holding.question.feasible.names]
    refused = [*_describe_differences(file, statement, names)]
    if file.get("limit") not in limits:
        length = (limits[-1] or {})["length"]
        refused.append(
            f"a limit of {_describe_limit(file['limit'])}, "
            f"where this robot implies a length of {length} m"
        )
    if refused:
        return Binding(tuple(refused))
    pairs = zip(file["matrix"], statement["matrix"], strict=True)
    change = max((float(_row_change(*pair)) for pair in pairs if pair[0] != pair[1]), default=0.0)
    if "data" in file and file["data"] != statement["data"]:
        change = max(change, float(np.finfo(np.float64).eps))
    if change:
        again = _adapt_proof(certificate, holding)
        if again is None:
            return Binding((f"computed numbers differ by {change:.1e}: not proved for yours",))
        certificate = again
    # The claim that is proved, its subject and its conditions.
    data = certificate.data
    proved = CLAIMS.get(data["claim"])
    if proved is None:
        first = certificate.verify().splitlines()[0]
        proved = f"that {first.partition(': ')[2]}"
    under = [f"{data['consistency']} consistency"]
    if checker.exact(data["margin"]):
        under.append(f"a margin of {data['margin']} in SI")
    for item in (*data["ties"], *data["constraints"]):
        under.append(f"{item['name']} ({_describe_item(item, names)})")
    if data.get("limit"):
        under.append(_describe_limit(data["limit"]))
    if change:
        under.append(f"coefficients as computed here, {change:.0e} from the file's")
    return Binding((), f"proves {proved} about {holding.about} under {', '.join(under)}")


# -- comparison ----------------------------------------------------------------------------------


def _describe_limit(limit: Mapping[str, str]) -> str:
    mass, length, terms = (limit[key][:40] for key in checker.LIMITS)
    return f"masses up to {mass} kg within {length} m and joint terms up to {terms}"


def _describe_differences(file: Statement, own: Statement, names: Sequence[str]) -> Iterator[str]:
    """Differences between a certificate and the reader's robot and log, part by part."""
    if file["consistency"] != own["consistency"]:
        yield f"{file['consistency']} consistency, not {own['consistency']}"
    if checker.exact(file["margin"]) != checker.exact(own["margin"]):
        yield f"a margin of {file['margin']}, not {own['margin']}"
    if file["robot"] != own["robot"]:
        yield "another geometry, gravity, name or other joint terms than the robot's"
    if [list(name) for name in file["parameters"]] != own["parameters"]:
        yield "other parameters, or in another order"
        return
    yield from _one_sided_items("tie", file["ties"], own["ties"], names)
    yield from _one_sided_items("constraint", file["constraints"], own["constraints"], names)
    if len(file["matrix"]) != len(own["matrix"]):
        yield f"{len(file['matrix'])} equations, where K has {len(own['matrix'])} rows"
    else:
        for i, (theirs, ours) in enumerate(zip(file["matrix"], own["matrix"], strict=True)):
            if theirs != ours and not _row_change(theirs, ours) <= ROUNDING:
                yield f"equation {i} is not row {i} of K"
    values, expected = file.get("values", []), own.get("values", [])
    if len(values) != len(expected):
        yield f"{len(values)} values, not {len(expected)}"
    else:
        for i, (theirs, ours) in enumerate(zip(values, expected, strict=True)):
            if checker.exact(theirs) != checker.exact(ours):
                yield f"value {i} is {theirs[:40]}, not {ours}"
    if "data" in file:
        data, expected_data = file["data"], own["data"]
        if len(data["rows"]) != len(expected_data["rows"]):
            yield f"{len(data['rows'])} rows of data, not {len(expected_data['rows'])}"
        else:
            there = _data_as_array(data, expected_data)
            reader_data = _data_as_array(expected_data, expected_data)
            sizes = np.maximum(np.linalg.norm(reader_data, axis=0), np.finfo(np.float64).tiny)
            changes = np.abs(there - reader_data) / sizes
            for row, column in np.argwhere(~(changes <= ROUNDING))[:1].tolist():
                yield f"row {row} of the data differs, first in column {column}"
        square, text = checker.exact(expected_data["rest"]), data["rest"]
        if abs(checker.exact(text) - square) > ROUNDING * square:
            yield f"a rest of {text[:40]} in the squared residual, not {expected_data['rest']}"


def _one_sided_items(
    what: str, file: Sequence[Any], own: Sequence[Any], names: Sequence[str]
) -> Iterator[str]:
    if list(file) == list(own):
        return
    for item in file:
        if item not in own:
            yield f"a {what} that you did not name: {item['name']}: {_describe_item(item, names)}"
    for item in own:
        if item not in file:
            text = _describe_item(item, names)
            yield f"without the {what} that you named: {item['name']}: {text}"
    if all(item in own for item in file) and all(item in file for item in own):
        yield f"its {what}s in another order, or twice"


def _describe_item(item: Mapping[str, Any], names: Sequence[str]) -> str:
    if "row" in item:
        return f"{_describe_sum(item['row'], names)} = {item['value']}"
    if item["size"] > 1:
        return f"a {item['size']}x{item['size']} matrix is positive"
    (_, _, row, constant), *_ = item["entries"]
    return f"{_describe_sum(row, names)} + {constant} >= 0"


def _describe_sum(row: Sequence[Any], names: Sequence[str]) -> str:
    return " + ".join(f"{c} {names[j]}" for j, c in row)


def _row_change(file: Sequence[Any], own: Sequence[Any]) -> Fraction | float:
    """Largest difference of coefficients, relative to each; infinite where others are zero."""
    there, reader_row = ({j: checker.exact(c) for j, c in row} for row in (file, own))
    if there.keys() != reader_row.keys():
        return np.inf
    return max((abs(there[j] - c) / abs(c) for j, c in reader_row.items()), default=Fraction(0))


def _data_as_array(data: Statement, like: Statement) -> Array:
    """Rows and target side by side; as many columns as `like` has."""
    rows = [*data["rows"], *like["rows"]]
    columns = 1 + max((i for row in rows for i, _ in row), default=-1)
    out = np.zeros((len(data["rows"]), columns + 1))
    for line, row, target in zip(out, data["rows"], data["target"], strict=True):
        for i, value in row:
            line[i] = float(checker.exact(value))
        line[-1] = float(checker.exact(target))
    return out


# -- the same proof for the reader's own numbers ---------------------------------------------------


def _adapt_proof(certificate: Certificate, holding: HeldStatement) -> Certificate | None:
    """A proof of the reader's own statement, from the file's; None when there is none."""
    file, question = certificate.data, holding.question
    if file["claim"] == "feasible":
        *numbers, over = (checker.exact(x) for x in file["point"])
        delta = np.array([float(x / over) for x in numbers])
        point = PresolvedQuestion.from_question(question).complete_point(delta)
        return None if point is None else question.certify_feasible(point)
    if file["claim"] == "boundary":
        return None
    entries = {key: file[key] for key in checker.KEYS[file["claim"]].split() if key != "values"}
    if "floor" in entries:
        entries["floor"] = str(float(checker.exact(file["floor"]) * (1 - FLOOR_LOSS)))
        entries["data"] = holding.statement["data"]
    first = [file["limit"]] if file["limit"] else []
    for limit in (*first, *(question.size_limits(mass) for mass in HEAVIEST)):
        adapted = question.unchecked_certificate(file["claim"], **{**entries, "limit": limit})
        if adapted.holds():
            return adapted
    return None
