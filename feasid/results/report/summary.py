"""A fit in words: all of it as text (`summary`), or at a glance (`display`).

The display answers whether the model is consistent, how it predicts, what is known, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Measure, plain
from feasid.core.errors import InputError
from feasid.core.text import escape_controls, in_percent
from feasid.identification.assessment.checks import NO, REFUSED, has_load, is_strong
from feasid.identification.assessment.quality import remarks
from feasid.identification.estimation.noise import least_squares
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log
from feasid.parameters.feasibility.least_squares import with_weighed
from feasid.robot.joint_terms import TERMS

if TYPE_CHECKING:
    import pandas as pd

FIRST = ("mass-bound", "mass-released", "shape-bound", "shape-released")
"""Codes of notes that the summary says first: the model is not what the description suggests."""

REJECTED = ("mass-released", "shape-released")
"""Codes of notes that need attention: the log and the description disagree."""

SURE = 30.0  #: Relative standard deviation [%] below which a base parameter counts as identified.

WRAPPED = 'style="white-space:pre-wrap"'

AS_TABLE: Any = {"border": 0, "float_format": "{:.4g}".format, "na_rep": "", "justify": "left"}
"""Format of a DataFrame in notebooks, with four digits."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """A fit in words and tables."""

    text: str  #: Data, errors, verdict, coefficients and notes.
    #: "base parameters" and "standard parameters": value, standard error, 95 % interval, described
    #: value and source. "estimates": ordinary, weighted and feasible least squares with standard
    #: errors. "errors": relative, by joint. "bodies": in SI units.
    tables: Mapping[str, pd.DataFrame]

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, notes = (self.text.partition("\n\n")[0], self.text.partition("\nnotes\n")[2])
        frames = {k: v.rename(index=plain) for k, v in self.tables.items()}
        parts = [f"<h4>{escape(k)}</h4>{v.to_html(**AS_TABLE)}" for k, v in frames.items()]
        shown = escape(escape_controls(notes))
        more = f"<details><summary>notes</summary><pre {WRAPPED}>{shown}</pre></details>"
        text = f"<pre {WRAPPED}>{escape(escape_controls(head))}</pre>"
        return f"{text}{''.join(parts)}{more if notes else ''}"

    def markdown(self) -> str:
        """All tables in Markdown, numbers with four digits."""
        parts = []
        for name, frame in self.tables.items():
            head, *rows = _cells(frame)
            table = [head, ["---"] * len(head), *rows]
            lines = [" | ".join(row).replace("\\", "\\\\") for row in table]
            parts.append(f"### {name}\n\n" + "\n".join(f"| {line} |" for line in lines))
        return "\n\n".join(parts) + "\n"

    def latex(self) -> str:
        """All tables as ``longtable`` of booktabs, parameters as symbols, four digits."""
        parts = []
        for name, frame in self.tables.items():
            head, *rows = _cells(frame)
            lines = [" & ".join(map(_latex_text, head)) + r" \\"]
            lines += [" & ".join(map(_latex_symbols, row)) + r" \\" for row in rows]
            body = "\n".join([lines[0] + "\n\\midrule\\endhead", *lines[1:]])
            columns = "p{0.4\\linewidth}" + "r" * (len(head) - 1)
            parts.append(
                f"% {name}: \\usepackage{{longtable,booktabs}}\n\\begin{{longtable}}{{{columns}}}\n"
                f"\\toprule\n{body}\n\\bottomrule\n\\end{{longtable}}"
            )
        return "\n\n".join(parts) + "\n"


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    rows = [
        [plain(index), *(x if isinstance(x, str) else f"{x:.4g}" for x in row)]
        for index, row in zip(frame.index, frame.itertuples(index=False), strict=True)
    ]
    return [[str(frame.index.name or ""), *map(str, frame.columns)], *rows]


PARAMETER = re.compile(r"([^\s()]+)\.([A-Za-z][A-Za-z]*)(\d*)(?=[\s)]|$)")
"""A parameter in an expression, such as ``link02.Lxx``."""


def _latex_symbols(text: str) -> str:
    """A cell in which parameters are symbols, and numbers that are none are dashes."""
    if text in ("nan", "inf", "-inf"):
        return {"nan": "--", "inf": r"$\infty$", "-inf": r"$-\infty$"}[text]
    if text.startswith("beta_"):
        return rf"$\beta_{{{text[5:]}}}$"
    parts, end = [], 0
    for match in PARAMETER.finditer(text):
        body, symbol, number = match.groups()
        below = f"{symbol[1:]}{number}"
        index = f"{below + ',' if below else ''}\\mathrm{{{_latex_text(body)}}}"
        parts += [_latex_text(text[end : match.start()]), f"${symbol[0]}_{{{index}}}$"]
        end = match.end()
    return "".join([*parts, _latex_text(text[end:])])


def _latex_text(text: str) -> str:
    """Text in which LaTeX's special characters are letters."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


def summary(fit: FittedModel, test: Any = None) -> Summary:
    """The fit as text and tables: data, errors, verdict, coefficients, and what was assumed."""
    import pandas as pd

    errors = {"fitted": fit.relative_error}
    if test is not None:
        errors["test"] = test_errors(fit, test)
    names = [".".join(name) for name in fit.robot.names]
    K = np.asarray(fit.base.K, float)
    tables = {
        "base parameters": linear_form_table(fit, K, fit.base.expressions),
        "standard parameters": linear_form_table(fit, np.eye(len(names)), names),
        "estimates": estimates_table(fit),
        "errors": pd.DataFrame(errors),
        "bodies": fit.bodies,
    }
    percent = (100 * tables["errors"]).to_string(float_format="{:.2f}%".format)
    warned = [e.attrs["leakage"] for e in errors.values() if e.attrs.get("leakage")]
    warned += [note for e in errors.values() for note in e.attrs.get("notes", ())]
    bodies = [fit.bodies[["mass", "com_x", "com_y", "com_z", "Ixx", "Iyy", "Izz"]]]
    terms = fit.joint_terms.mask(lambda x: x.abs() < 1e-6 * x.abs().max(), 0.0)
    bodies += [terms] if len(terms) else []
    uses = [f"{m.name:<10} {m.value}" for m in _use_measures(fit)]
    size, base = fit.unknowns.unknowns, fit.unknowns.size
    total = "standard" if fit.unknowns is fit.base else "unknown standard"
    reduced = f"\n{fit.robot.constraint_summary}" if fit.robot.constraint_summary else ""
    cutoff = fit.reduced.cutoff
    filtered = f", low-pass {cutoff:.3g} Hz" if cutoff is not None else ""
    values, warmth = dict(zip(fit.robot.parameter_names, fit.delta, strict=True)), []
    for e in (e for e in fit.calibration.confirmed if e.at.kind == "temperature"):
        parts = []
        for symbol, *change in zip(("fc", "fv"), e.value, e.deviation, strict=True):
            friction = values.get((fit.robot.bodies[e.at.joint].name, symbol), 0.0)
            value, spread = 100 * np.array(change) / (friction or np.nan)
            if friction > 0:
                parts.append(f"{TERMS[symbol].name} {value:+.3g} +- {spread:.2g} % per K")
        warmth.append(f"{e.joint} at {e.at.origin:g} degrees C: {', '.join(parts)}")
    sections = [
        *(note for note in fit.notes if note.code in FIRST),
        (
            f"feasible fit of {fit.robot.name!r}: {base} base of {size} {total} parameters, "
            f"{len(fit.robot.bodies)} bodies\n"
            f"{fit.reduced.samples} samples x {fit.robot.dof} joints{filtered}, "
            f"condition number {fit.condition_number:.3g}{reduced}"
        ),
        "\n  ".join(["what it is good for", *uses, *_remarks(fit)]),
        repr(fit.quality),
        _verdict_text(fit),
        "\n".join(["relative torque error", percent, *(f"  note: {w}" for w in warned)]),
        *(table.to_string(float_format="{:.4g}".format) for table in bodies),
        *(["\n  ".join(["friction holds at one temperature", *warmth])] if warmth else []),
        _precision_text(fit, tables),
    ]
    if fit.notes:
        lines = (f"  - {n.with_code}".replace("\n", "\n  ") for n in fit.notes)
        sections.append("notes\n" + "\n".join(lines))
    return Summary("\n\n".join(map(str, sections)), tables)


def test_errors(fit: FittedModel, test: Any) -> pd.Series[float]:
    """Errors on a test log, computed unless they are given as a Series."""
    import pandas as pd

    if not isinstance(test, pd.Series):
        return errors_on_log(fit, test, fit.test_options())
    if missing := [j for j in fit.relative_error.index if j not in test.index]:
        raise InputError(
            f"test is a Series without {', '.join(missing[:4])}: give a log, or what fit.errors "
            "returned for one",
            option="test",
        )
    return test


def _verdict_text(fit: FittedModel) -> str:
    solution = fit.solution
    name, margin = min(solution.margins.items(), key=lambda item: item[1])
    towards = {
        "description": "the description's own inertials",
        "centre": "the centre of the feasible set",
        "mixed": "the description's own inertials of "
        f"{', '.join(solution.bodies_with_reference)}, for the "
        "other bodies the centre of the feasible set",
    }[solution.tie_break]
    meaning = {
        "full": "full: every pseudo-inertia positive definite",
        "semi": "semi: the 6x6 condition, weaker than a real body's",
    }[solution.consistency]
    lines = [
        f"FEASIBLE ({meaning})",
        f"  verified    {solution.verified}",
        f"  margin      {margin:.2e} of the body's own mass and size ({name})",
        f"  repair      least-squares optimum +{100 * fit.optimum.residual_increase:.2g} % "
        "for strict feasibility",
        f"  full model  drawn towards {towards}",
    ]
    if not np.isnan(fit.price):
        lines[-1] += ","
        text = f"at a residual {100 * fit.price:.2g} % above the smallest feasible one (proved)"
        lines.append(f"              {text}")
    return "\n".join(lines)


PRIOR_SHARE = 0.5
"""Of the variance that the data alone leave: where less is left with the prior, the prior holds
more than half of what is known, and the value's source is called "prior"."""

QUANTILE = 1.96  #: Standard errors on each side of a 95 % interval of a normal distribution.


def linear_form_table(fit: FittedModel, rows: Array, names: Sequence[str]) -> pd.DataFrame:
    """Linear forms of the standard parameters: value, precision, and where the value comes from.

    `rows` (m, n): a form's coefficients of the n standard parameters. Returns: columns ``value``;
    ``std. err.``, infinite where nothing limits it; ``[2.5 %`` and ``97.5 %]``, the normal 95 %
    interval (of masses that of their logarithm), cut at zero where a sum cannot be negative;
    ``description``, NaN if it gives no value;
    ``source``: "data", "prior" (more than half of what is known comes from the description, or all
    of it), "weighed", "bound" (zero, by a constraint) or "given".
    """
    import pandas as pd

    r, K = fit.triangle[0], np.asarray(fit.base.K, dtype=np.float64)
    forms = np.asarray(np.linalg.lstsq(K.T, rows.T, rcond=None)[0].T, dtype=np.float64)
    shows = np.linalg.norm(forms @ K - rows, axis=1) <= TOLD * np.linalg.norm(rows, axis=1)
    alone = np.where(shows, _data_variance(r, forms) * fit.estimate.row_deviation**2, np.inf)
    if weighed := fit.estimator.weighed:
        every, r, _ = with_weighed(fit.base, *fit.triangle[:2], weighed)
        alone = _data_variance(r @ every.K, rows)
    variance = np.einsum("ij,jk,ik->i", forms, fit.covariance, forms)
    full = fit.estimate.covariance
    held = np.inf if full is None else np.einsum("ij,jk,ik->i", rows, full, rows)
    variance = np.where(shows, variance, held)
    value, error = rows @ fit.delta, np.sqrt(np.maximum(variance, 0.0))
    drives = np.isin(np.arange(rows.shape[1]), np.ravel(fit.robot.inertial_columns), invert=True)
    single = (np.count_nonzero(rows, axis=1) == 1) & rows[:, drives].any(axis=1)
    masses = rows[:, fit.robot.inertial_columns[:, 9]]
    positive = (np.count_nonzero(rows, axis=1) == 1) & masses.any(axis=1)
    spread = QUANTILE * error
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        factor = np.exp(spread / value)
        of_log = positive & (value > 0)
        low = np.where(of_log, value / factor, value - spread)
        high = np.where(of_log, value * factor, value + spread)
    source = np.where(variance >= PRIOR_SHARE * alone, "data", "prior")
    source = np.where([n in {w.name for w in weighed} for n in names], "weighed", source)
    source = np.where(single & (np.abs(value) <= AT_BOUND * error), "bound", source)
    # Masses, moments of inertia, and terms that dissipate cannot be negative.
    signed = np.ones(rows.shape[1], dtype=bool)
    signed[fit.robot.inertial_columns[:, [0, 3, 5, 9]]] = False
    named = enumerate(fit.robot.parameter_names)
    signed[[c for c, (_, s) in named if s in TERMS and TERMS[s].nonnegative]] = False
    described = fit.description.values
    unknown = rows[:, ~np.isfinite(described)].any(axis=1)
    nonnegative = (rows.min(axis=1) >= 0) & ~rows[:, signed].any(axis=1)
    return pd.DataFrame(
        {
            "value": value,
            "std. err.": error,
            "[2.5 %": np.where(nonnegative, np.maximum(low, 0.0), low),
            "97.5 %]": high,
            "description": np.where(unknown, np.nan, rows @ np.nan_to_num(described)),
            "source": np.where(error == 0, "given", source),
        },
        index=pd.Index([plain(name) for name in names], name="parameter"),
    )


TOLD = 1e-9  #: Largest share of a form's norm outside the row space of K.

AT_BOUND = 1e-3
"""A coefficient of drive or friction counts as zero below this share of its standard error."""


def _data_variance(r: Array, forms: Array) -> Array:
    """Variance of forms of the base parameters by the equations alone, infinite where not seen."""
    norms = np.linalg.norm(r, axis=0)
    norms[norms == 0] = 1.0
    _, singular, right = np.linalg.svd(r / norms)
    # Fewer equations than parameters leave directions without a singular value.
    singular = np.pad(singular, (0, len(right) - len(singular)))
    parts = (forms / norms) @ right.T
    above = singular > SEEN * singular[0]
    out = np.sum((parts[:, above] / singular[above]) ** 2, axis=1)
    lost = np.linalg.norm(parts[:, ~above], axis=1) > SEEN * np.linalg.norm(parts, axis=1)
    return np.asarray(np.where(lost, np.inf, out))


SEEN = 1e-9  #: Of the largest singular value: directions below it are not seen.


def _coefficient_text(frame: pd.DataFrame) -> str:
    """A table of coefficients for a terminal; names, which may be long, come last."""
    lines = [
        f"{'value':>11}{'std. err.':>11}{'95 % interval':>25}{'description':>13}  source  parameter"
    ]
    for name, row in zip(frame.index, frame.itertuples(index=False), strict=True):
        value, error, low, high, description, source = row
        interval = f"[{low:.4g}, {high:.4g}]"
        about = "" if np.isnan(description) else f"{description:.4g}"
        lines.append(f"{value:11.4g}{error:11.2g}{interval:>25}{about:>13}  {source:<6}  {name}")
    return "\n".join(lines)


def estimates_table(fit: FittedModel) -> pd.DataFrame:
    """Base parameters by ordinary, weighted and feasible least squares, with standard errors.

    All use the same filtered equations. Ordinary least squares takes all rows as equally certain
    and independent; the others have the fit's noise, and the feasible one constraints and a prior.
    """
    import pandas as pd

    rows = fit.reduced.rows * len(fit.reduced.triangles)
    r, rho, residual = fit.reduced.triangle()
    spread = residual / np.sqrt(max(rows - len(rho), 1))
    columns: dict[str, Any] = {}
    for name, (root, right), deviation in (
        ("OLS", (r, rho), spread),
        ("WLS", fit.triangle[:2], fit.estimate.row_deviation),
    ):
        errors = deviation * np.sqrt(_data_variance(root, np.eye(len(right))))
        columns |= {name: least_squares(root, right)[0], f"{name} std. err.": errors}
    columns |= {"feasible": fit.beta, "feasible std. err.": fit.base_table["std"].to_numpy()}
    columns["combination"] = [plain(text) for text in fit.base.expressions]
    names = [f"beta_{k + 1}" for k in range(len(fit.beta))]
    return pd.DataFrame(columns, index=pd.Index(names, name="parameter"))


def _precision_text(fit: FittedModel, tables: Mapping[str, pd.DataFrame]) -> str:
    """The base parameters, then joint terms and masses, with what each value comes from."""
    base, standard = tables["base parameters"], tables["standard parameters"]
    inertial = np.delete(fit.robot.inertial_columns, -1, axis=1)  # all but the masses
    others = standard.drop(index=standard.index[np.ravel(inertial)])
    shown = others.drop(index=[name for name in others.index if name in base.index])
    symbols = dict.fromkeys(symbol for _, symbol in fit.robot.names if symbol in TERMS)
    lines = [
        count_precise(fit),
        *_blind_text(fit),
        _coefficient_text(base),
        "\njoint terms and masses; a mass by itself is rarely identifiable",
        _coefficient_text(shown),
        "source: data = the log; prior = more than half of what is known comes from the "
        "description;\nbound = zero because it must not be negative; given = fixed by known= or "
        "another equality",
        "symbols: Lxx..Lzz inertia about the joint frame, lx ly lz mass times centre, m mass; "
        + ", ".join(f"{symbol} {TERMS[symbol].name}" for symbol in symbols),
    ]
    return "\n".join(lines)


def _blind_text(fit: FittedModel) -> list[str]:
    blind = int(np.isinf(fit.base_table["std"]).sum())
    return [f"{blind} base parameters that this log does not determine"] if blind else []


def count_precise(fit: FittedModel) -> str:
    """How many base parameters have a small relative standard error."""
    table = fit.base_table
    sure = int((table["relative_std_percent"] < SURE).sum())
    return f"{sure} of {len(table)} base parameters (std. err. < {SURE:g} %)"


MORE = "more: fit.summary(), fit.plot(), fit.base_table, fit.report('report.html')"


def display(fit: FittedModel, test: Any = None) -> Display:
    """The display of a fit; `test` is a log that was not fitted, or its `errors`."""
    base, bodies = len(fit.beta), len(fit.robot.bodies)
    refused = any(map(is_strong, fit.quality.reasons))
    margin = min(fit.solution.margins.values())
    semi = ", semi-consistent only" if fit.solution.consistency == "semi" else ""
    # Prediction error of all joints, compared with those of the description and of least squares.
    errors = fit.quality.errors
    name = "cross-validation error" if errors.unseen else "error where fitted"
    value = in_percent(errors.overall_error(errors.model))
    value += f" ({errors.others})" if errors.others else ""
    measures = [
        *([] if refused else _use_measures(fit)),
        Measure("physically consistent", f"yes (certified), smallest margin {margin:.2g}{semi}"),
        Measure(name, value, met=fit.quality.level != "useless"),
        *([] if test is None else [_error_measure("test error", test_errors(fit, test))]),
        _error_measure("error on fitted log", fit.relative_error),
    ]
    troubles = ["DO NOT USE THIS MODEL."] if refused else []
    # What contradicts the fit, and mistakes of the log; lines of uses say what they grade.
    graded = {"gravity compensation", "feed-forward"}
    # Causes before consequences: what is wrong with the log, then what its model looks like.
    faults = [n for n in fit.notes if n.values.get("level")]
    troubles += [n.with_code for n in faults if n.values["level"] == "error"]
    # Another unit changes masses, not what is missed: it comes after a model that explains little.
    troubles += [n.with_code for n in faults if n.values.get("confirmed") and n.code not in REFUSED]
    reasons = [r for r in fit.quality.reasons if r.code not in graded]
    troubles += [r.with_code for r in reasons if is_strong(r)]
    troubles += [n.with_code for n in fit.notes if n.code in REJECTED]
    troubles += [r.with_code for r in reasons]
    notes = [f"{len(fit.notes)} note{'s' if len(fit.notes) > 1 else ''} on what was assumed, "
             "derived and left out: fit.notes"] if fit.notes else []  # fmt: skip
    return Display(
        f"feasible fit of {fit.robot.name!r}: {fit.quality.level}; {base} base of "
        f"{fit.base.unknowns} parameters, {bodies} bod{'ies' if bodies != 1 else 'y'}",
        measures,
        [*dict.fromkeys(troubles)],
        [*([] if refused else _remarks(fit)), *notes],
        MORE,
    )


def _use_measures(fit: FittedModel) -> list[Measure]:
    """A line for each use: its grade and a sentence."""
    return [
        Measure(
            row["grade"] or "-",
            f"{str(use)[0].upper()}{str(use)[1:]}. {row['why']}",
            met=row["grade"] != NO,
            folded=True,
        )
        for use, row in fit.uses.iterrows()
    ]


def _remarks(fit: FittedModel) -> list[str]:
    warned = [n.with_code for n in fit.notes if n.values.get("level") == "warning"]
    if not has_load(fit.evidence):  # else a remark says how much the robot carries
        warned[:0] = [n.with_code for n in fit.notes if n.code == "payload"]
    shown = {r.with_code for r in fit.quality.reasons}
    return [*remarks(fit.evidence), *_blind_text(fit), *(w for w in warned if w not in shown)]


def _error_measure(name: str, errors: pd.Series[float]) -> Measure:
    """The error of all joints, and the smallest and the largest with their joints."""
    joints = 100 * errors.drop("all").dropna().sort_values()
    ends = joints.iloc[[0, -1]] if len(joints) > 1 else joints[:0]
    text = " to ".join(f"{x:.3g} {joint}" for joint, x in ends.items())
    return Measure(name, f"{in_percent(errors['all'])}{f' ({text})' if text else ''}")
