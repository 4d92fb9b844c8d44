"""Ranges: the values that a parameter has over all feasible models that fit the log.

A model fits when its squared residual, in units of the noise, exceeds that of the best one by no
more than a budget. The squared residual of the true parameters exceeds that of unconstrained least
squares by a number with a chi-square law with as many degrees of freedom as there are base
parameters, so that with the budget of `level` all ranges together hold the truth with at least this
probability, when noise and friction are as they are modelled. Both ends of a range are proved in
rational arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.stats import chi2

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError, did_you_mean
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.options.complete import complete_options
from feasid.options.tables import RangeOptions
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.least_squares import LeastSquares, feasible_least_squares
from feasid.parameters.identifiability.base import BaseParameters
from feasid.parameters.identifiability.parameters import parameter_label
from feasid.parameters.identifiability.views import Wanted
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.assessment.residuals import Structure
    from feasid.parameters.feasibility.proof.claim import Certificate
    from feasid.parameters.feasibility.region import FormBound, Region

COUNTS = 0.1  #: A source of limits is named for a range where its share of the range is larger.

PREDICTED = 0.5
"""Share of a joint's squared residual that the motion predicts beyond which ranges say so."""

MARKS = {
    "proof": "not proved",
    "limit": "not determined",
    "prior": "from prior",
    "feasibility": "from feasibility",
    "data": "from data",
}
"""The weakest comes first: a range is called by the weakest of what it needs."""

WITHOUT_END = (MARKS["proof"], MARKS["limit"])  #: Marks of ends that are infinite.

TERM = re.compile(r"(?:(?P<factor>\d[\d.]*(?:[eE][-+]?\d+)?)\s*\*?\s+|(?P<plain>))(?P<name>\S.*)")


@dataclass(frozen=True, eq=False)
class ResidualRegion:
    """The region of base parameters that a log allows, and further constraints."""

    base: BaseParameters
    #: The weighted triangle that was solved, and rows of parameters that were weighed.
    equations: LeastSquares
    #: Standard deviation of one of these rows; 1 when they are in units of the noise.
    deviation: float
    feasible: FeasibleSet  #: Physically consistent models within the caller's bounds.
    plausible_set: FeasibleSet  #: The same within the plausible bounds of the fit, too.
    best: Array  #: Shape (n,): the feasible model with the smallest residual.

    def budget(self, level: float) -> float:
        """Largest squared residual: the best model's, and the chi-square bound of this level."""
        bound = float(chi2.ppf(level, len(self.equations.rho)))
        return self.squared_residual(self.best) + self.deviation**2 * bound

    def squared_residual(self, delta: Array) -> float:
        """Squared norm of the residual of these standard parameters."""
        log = self.equations
        return float(np.sum((log.R @ (log.base.K @ delta) - log.rho) ** 2))

    def region_within(self, level: float, plausible: bool) -> tuple[Region, tuple[Note, ...]]:
        """The models within the budget, and constraints that could not be kept."""
        budget, K = self.budget(level), np.asarray(self.equations.base.K)
        R, rho = self.equations.R, self.equations.rho
        feasible, start = self.feasible, self.best
        notes: tuple[Note, ...] = ()
        if plausible and len(self.plausible_set.constraints) > len(self.feasible.constraints):
            optimum = feasible_least_squares(R, rho, self.equations.base, self.plausible_set).delta
            if self.squared_residual(optimum) < budget:
                feasible, start = self.plausible_set, optimum
            else:
                text = "no plausible model fits within the budget: ranges are without plausibility"
                notes = (Note(text, "implausible"),)
        scale = problem_units(self.base.robot, feasible, R @ K, rho, torques=True)
        robot = self.base.robot
        from feasid.parameters.feasibility.region import Region

        return Region.with_limits(robot, feasible, K, R, rho, budget, scale, start), notes


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Range:
    """The values of one parameter, or of a sum of parameters, over all consistent models that fit.

    Attributes
    ----------
    mark : {"from data", "from feasibility", "from prior", "not determined", "not proved"}
        The weakest reason on which an end rests. "from prior": bounds given by you or assumed as
        plausible; "not proved": no exact proof was found, and the end is infinite.
    """

    name: str  #: The parameter, or the sum.
    value: float  #: Of the identified model.
    #: No model has less or more: proved; where the end is `limited`, no model within the region's
    #: ``largest`` size. Infinite where nothing of the log, of feasibility and of plausible bounds
    #: decides the end.
    lower: float
    upper: float  #: See `lower`.
    marks: tuple[str, str]  #: Of the lower and of the upper end.
    #: Whether the proof of the lower and of the upper end is about models within our limit on sizes
    #: only. The limit is then a constraint in the end's certificate, too.
    limited: tuple[bool, bool]
    #: (ndarray, ndarray): models that fit and exist, shape (n,) each, near the ends.
    models: tuple[Array, Array]
    region: Region = field(repr=False)  #: The models that fit and exist.
    #: (End, End): the lower and the upper end with their proofs.
    ends: tuple[FormBound, FormBound] = field(repr=False)

    @property
    def mark(self) -> str:
        """See the class."""
        return min(self.marks, key=[*MARKS.values()].index)

    def certificate(self, end: str) -> Certificate | None:
        """Proof of the "lower" or "upper" `end`, for ``feasid verify``; `InputError` of another.

        It proves that every consistent model beyond the end, within the stated limits, has a
        squared residual of at least the budget. None if there is no end, or if a model attains the
        end.
        """
        if end not in ("lower", "upper"):
            raise InputError(f"a range has a lower and an upper end, not {end!r}")
        k = ("lower", "upper").index(end)
        if self.marks[k] in WITHOUT_END:
            return None
        return self.region.certificate(self.ends[k])

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __repr__(self) -> str:
        return f"{self.name}: {self.lower:.5g} to {self.upper:.5g}, {self.mark}{self.condition}"

    @property
    def condition(self) -> str:
        """The limit on sizes within which an end is proved, in words; empty without limit."""
        return f", among {limit_text(self.region.largest)}" if any(self.limited) else ""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class ParameterRanges(Displayed, Sequence[Range]):
    """Ranges of several parameters: a sequence with a table."""

    items: tuple[Range, ...]  #: One range per parameter.
    level: float  #: Confidence level of the budget.
    budget: float  #: Largest squared residual of a model that fits.
    notes: tuple[Note, ...] = ()  #: What was assumed and what to be aware of.

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        """By place, or by the parameter's name."""
        if isinstance(place, str):
            names = [r.name for r in self.items]
            if place not in names:
                raise KeyError(f"no range of {place!r}{did_you_mean(place, names)}")
            return self.items[names.index(place)]
        return self.items[place]

    @cached_property
    def table(self) -> pd.DataFrame:
        """By parameter: value, lower and upper end, the reason of each end, and of the range."""
        import pandas as pd

        rows = [
            (r.value, r.lower, r.upper, *r.marks, r.mark, bool(r.condition)) for r in self.items
        ]
        columns = ["value", "lower", "upper", "lower_mark", "upper_mark", "mark", "limited"]
        index = pd.Index([r.name for r in self.items], name="parameter")
        return pd.DataFrame(rows, index, columns)

    def explain(self) -> str:
        """One line for each range."""
        table = self.table[["value", "lower", "upper", "mark", "limited"]]
        text = table.to_string(float_format="{:.4g}".format)
        notes = [*(n.with_code for n in self.notes), *self._conditions]
        return "\n".join([self._title, text, *(f"  - {note}" for note in notes)])

    @property
    def _conditions(self) -> list[str]:
        """Explanation of "limited" ranges."""
        if not self.table["limited"].any():
            return []
        models = limit_text(self.items[0].region.largest)
        return [f"limited: proved among {models} (sum of masses, moments and joint terms)"]

    @property
    def _title(self) -> str:
        return f"ranges of {len(self)} parameters over all models that fit at level {self.level:g}"

    def display(self) -> Display:
        """The number of ranges with each mark, and the first ranges."""
        counts = self.table["mark"].value_counts()
        measures = [Measure(m, f"{counts[m]}") for m in reversed(MARKS.values()) if m in counts]
        more = "ranges.table, ranges.explain(), ranges[0].certificate('upper')"
        rows = [
            f"{r.name}: {r.lower:.4g} to {r.upper:.4g}, {r.mark}{', limited' * bool(r.condition)}"
            for r in self.items
        ]
        rows += self._conditions
        return Display(self._title, measures, self.notes, rows, more)


@one_thread()
def find_ranges(
    residual: ResidualRegion,
    delta: Array,
    wanted: Iterable[Wanted] | None = None,
    assumed: tuple[Note, ...] = (),
    **options: Unpack[RangeOptions],
) -> ParameterRanges:
    """Ranges of parameters or sums; of all standard parameters by default; see `Fit.ranges`."""
    complete = complete_options(RangeOptions, options, "ranges")
    every = residual.base.robot.parameter_names
    forms = [linear_form(residual.base, one) for one in (every if wanted is None else wanted)]
    region, notes = residual.region_within(complete["level"], complete["plausible"])
    items: list[Range] = []
    with step("computing ranges") as advance:
        for name, form in forms:
            advance(len(items), len(forms))
            ends = low, high = region.find_end(-form, delta), region.find_end(form, delta)
            marks = _dominant_mark(low), _dominant_mark(high)
            lower, upper = (np.inf if mark in WITHOUT_END else end.proof.bound
                            for end, mark in zip(ends, marks, strict=True))  # fmt: skip
            limited = (region.needs_limit(low) and bool(np.isfinite(lower)),
                       region.needs_limit(high) and bool(np.isfinite(upper)))  # fmt: skip
            # The lower end is the largest value of minus the form; 0.0 - 0.0 has no sign.
            numbers = 0.0 - lower, upper, marks, limited, (low.reached, high.reached), region, ends
            items.append(Range(name, float(form @ delta), *numbers))
    if residual.squared_residual(delta) > region.budget:
        text = "the identified model does not fit at this level: its prior outweighs the log"
        notes = (*notes, Note(text, "fit-outside"))
    if unproved := [r.name for r in items if MARKS["proof"] in r.marks]:
        text = f"no proof was found for an end of {', '.join(unproved)}, which is left infinite"
        notes = (*notes, Note(text, "unproved", parameters=unproved))
    return ParameterRanges(tuple(items), complete["level"], region.budget, (*assumed, *notes))


def systematic_notes(structure: Sequence[Structure], joints: Sequence[str]) -> tuple[Note, ...]:
    """What ranges do not include, of errors that the motion predicts at the joints."""
    excluded = "systematic errors of the model are not included"
    if not structure:
        text = f"{excluded}; the log does not show whether there are any"
        return (Note(text, "systematic-unknown"),)
    shares = {j: s.share for j, s in zip(joints, structure, strict=True) if s.share > PREDICTED}
    if not shares:
        return ()
    named = ", ".join(f"{j} ({100 * share:.0f} %)" for j, share in shares.items())
    text = f"{excluded}; the motion predicts most of the residual of {named} (fit.selection)"
    return (Note(text, "systematic"),)


def _dominant_mark(end: FormBound) -> str:
    shares = (m for source, m in MARKS.items() if end.shares.get(source, 0.0) > COUNTS)
    return next(shares, MARKS["data"])


def limit_text(largest: float) -> str:
    """The limit on sizes in words: the sum of masses, second moments and joint terms in units."""
    return f"models of at most {largest:g} times the robot's size"


def linear_form(base: BaseParameters, wanted: Wanted) -> tuple[str, Array]:
    """Name and coefficients (n,) of a parameter or sum.

    Raises InputError: for a parameter that the robot does not have, with the nearest that it has,
    and for a sum of nothing.
    """
    robot = base.robot
    form = np.zeros(robot.size)
    if isinstance(wanted, Mapping):
        for name, factor in wanted.items():
            form[_parameter_column(robot, name)] += float(factor)
        label = " + ".join(f"{c:g} {_dotted_name(n)}" for n, c in wanted.items())
    elif isinstance(wanted, str) and wanted in base.expressions:
        form, label = np.asarray(base.K)[base.expressions.index(wanted)].copy(), wanted
    elif isinstance(wanted, str) and wanted not in _columns_by_spelling(robot):
        for sign, name in re.findall(r"(^|[+-] )\s*(.+?)(?=$| [+-] )", wanted.strip()):
            term, factor = name, 1.0
            if name not in _columns_by_spelling(robot) and (match := TERM.fullmatch(name)):
                term, factor = match["name"], float(match["factor"] or 1.0)
            form[_parameter_column(robot, term)] += -factor if sign == "- " else factor
        label = wanted
    else:
        form[_parameter_column(robot, wanted)] = 1.0
        label = wanted if isinstance(wanted, str) else _dotted_name(wanted)
    if not (np.isfinite(form).all() and form.any()):
        raise InputError(f"{label!r} is no sum of parameters with finite coefficients")
    return label, form


def _dotted_name(name: Any) -> str:
    """A parameter as text; a (body, parameter) pair joined by a dot."""
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _columns_by_spelling(robot: Robot) -> dict[str, int]:
    """Columns by all spellings: "forearm.m", "m forearm", "m3"."""
    out: dict[str, int] = {}
    for column, (body, symbol) in enumerate(robot.parameter_names):
        for label in (f"{body}.{symbol}", f"{symbol} {body}", parameter_label((body, symbol))):
            out[label] = column
    return out


def _parameter_column(robot: Robot, name: Any) -> int:
    labels, spelled = _columns_by_spelling(robot), _dotted_name(name)
    if spelled not in labels:
        raise InputError(
            f"no parameter {spelled!r}{did_you_mean(spelled, labels)}: name it as body.symbol, "
            f"such as {next(iter(labels))}",
            parameter=name,
        )
    return labels[spelled]
