"""Base parameters for other programs and for papers: plain data, CSV, LaTeX."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

from feasid.identifiability.expressions import number

if TYPE_CHECKING:
    from feasid.identifiability.base import BaseParameters


def as_dict(base: BaseParameters) -> dict[str, Any]:
    """Everything that can be known, as plain data for JSON.

    ``combinations`` holds per base parameter its leading parameter, its expression and its
    coefficients [body, symbol, value] in SI units.
    """
    names = base.robot.parameter_names
    rows = base.matrix.tocsr()
    rows.sort_indices()
    combinations = []
    for r, lead in enumerate(base.independent.tolist()):
        part = slice(rows.indptr[r], rows.indptr[r + 1])
        pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        combinations.append(
            {
                "leads": list(names[lead]),
                "expression": base.expressions[r],
                "coefficients": [[*names[c], value] for c, value in pairs],
            }
        )
    status = [[*n, s] for n, s in zip(names, base.status, strict=True)]
    return {
        "robot": base.robot.name,
        "base_parameters": base.size,
        "standard_parameters": base.robot.size,
        "combinations": combinations,
        "status": status,
        "rounded": [str(s) for s in base.snapped],
        "warnings": list(base.warnings),
        "check": {
            "residual": base.check.residual,
            "weakest": base.check.weakest,
            "seconds": base.check.seconds,
        },
    }


def as_csv(base: BaseParameters) -> str:
    """One line per coefficient of K: number of the base parameter, body, symbol, value."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["base_parameter", "body", "symbol", "coefficient"])
    for k, row in enumerate(as_dict(base)["combinations"]):
        for body, symbol, value in row["coefficients"]:
            writer.writerow([k + 1, body, symbol, repr(value)])
    return text.getvalue()


def as_latex(base: BaseParameters) -> str:
    """A table of the combinations, for booktabs."""
    lines = [r"\begin{tabular}{rl}", r"\toprule", r"& combination \\", r"\midrule"]
    for k, row in enumerate(as_dict(base)["combinations"]):
        lines.append(f"{k + 1} & ${_latex_sum(row['coefficients'])}$ \\\\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_sum(terms: list[list[Any]]) -> str:
    text = ""
    for body, symbol, value in terms:
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        size = number(value)
        factor = "" if size == "1" else f"{_scientific(size)}\\,"
        text += f"{sign}{factor}{_latex_name(body, symbol)}"
    return text


def _scientific(size: str) -> str:
    mantissa, exponent, power = size.partition("e")
    return f"{mantissa} \\cdot 10^{{{int(power)}}}" if exponent else mantissa


def _latex_name(body: str, symbol: str) -> str:
    owner = body.replace("_", r"\_")
    owner = owner if body.isdecimal() else rf"\mathrm{{{owner}}}"
    rotor = symbol.startswith("rotor_")
    letter, axes = symbol.removeprefix("rotor_")[0], symbol.removeprefix("rotor_")[1:]
    over = "^{r}" if rotor else ""
    return f"{letter}{over}_{{{owner}{',' + axes if axes else ''}}}"
