"""Can these parameters exist? The feasibility test, with a proof of either answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from feasid.certificate import exact
from feasid.core.arguments import UnfitError, as_numbers, checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError
from feasid.core.text import quote
from feasid.options.complete import complete_options, document_options, select_options
from feasid.options.tables import BoundOptions, CheckOptions
from feasid.parameters.feasibility.constraints.affine import Consistency
from feasid.parameters.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.parameters.feasibility.constraints.units import Units, constraint_units, problem_units
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.decide import NEARLY, ProvedAnswer, decide
from feasid.parameters.feasibility.proof.question import HEAVIEST, Question
from feasid.parameters.feasibility.reference import filter_contradiction, reference_model
from feasid.parameters.feasibility.solve import Attempt
from feasid.parameters.identifiability.base import resolve_base
from feasid.robot.description import Robot
from feasid.robot.formats.load import load_robot
from feasid.robot.inertia import SYMBOLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 1e50  #: Largest parameter, so that products of a few parameters fit doubles.


@document_options(CheckOptions)
def check(
    subject: Any,
    base: Any = None,
    *,
    feasible: FeasibleSet | None = None,
    **options: Unpack[CheckOptions],
) -> Verdict:
    """Decide whether parameters are feasible, and prove the answer.

    See `feasid.check`. A robot, or the file of one, is judged by its own parameters (links without
    inertial parameters are not constrained), a fit by the parameters it found and with the bounds
    that it was fitted with, an array as base parameters of `base`: BPFT, eq. (51) of Sousa and
    Cortesao (2014). `feasible` replaces consistency and bounds.

    Parameters
    ----------
    **options
        As there.
    """
    complete = complete_options(CheckOptions, options, "check")
    consistency, margin, solver = (complete[k] for k in ("consistency", "margin", "solver"))
    bounds = select_options(BoundOptions, options)
    fitted = getattr(subject, "solution", None)
    if fitted is not None:
        robot, fit_set = subject.robot, subject.feasible
        if feasible is None:
            allowed = feasible_set(robot, consistency or fit_set.consistency, **bounds)
            allowed = allowed.with_user_constraints_of(fit_set)
        else:
            allowed = feasible_set_from_options(robot, consistency, feasible, bounds)
        return _check_values(robot, allowed, fitted.delta, margin, solver)
    if isinstance(subject, str | Path):
        subject = load_robot(subject)
    if isinstance(subject, Robot):
        allowed = feasible_set_from_options(subject, consistency, feasible, bounds)
        return _check_values(subject, allowed, subject.values, margin, solver)
    base = resolve_base(base)
    allowed = feasible_set_from_options(base.robot, consistency, feasible, bounds)
    beta = check_base_values(subject, base, allowed)
    K = np.asarray(base.K, dtype=np.float64)
    labels = getattr(base, "expressions", None) or [str(i) for i in range(len(K))]
    return _check_equations(base.robot, allowed, K, beta, labels, margin, solver)


def feasible_set_from_options(
    robot: Robot,
    consistency: Consistency | None,
    feasible: FeasibleSet | None,
    bounds: Mapping[str, Any],
) -> FeasibleSet:
    """The set that these options describe.

    Raises InputError: names an unknown option, and options that `feasible` would make void.
    """
    if feasible is None:
        return feasible_set(robot, consistency or "full", **bounds)
    if bounds or consistency not in (None, feasible.consistency):
        void = ", ".join([*bounds] or ["consistency"])
        raise InputError(
            f"feasible= says everything, and {void}= would be ignored: build the set with "
            f"feasible_set(robot, ...)",
            option=void,
        )
    if feasible.names != robot.parameter_names:
        raise InputError(f"feasible= is of {feasible.size} parameters of another robot than "
                         f"{robot.name!r}: build it with feasible_set(robot, ...)",
                         option="feasible")  # fmt: skip
    return feasible


def check_base_values(beta: npt.ArrayLike, base: Any, feasible: FeasibleSet) -> Array:
    """Base parameters as a finite vector of the right length, or say which entry is wrong."""
    try:
        values = as_numbers(beta, finite=False)
    except UnfitError as error:
        raise InputError(
            f"base parameters must be numbers, {str(error) or 'not ' + quote(beta)}"
        ) from None
    nb, n = np.shape(base.K)
    if n != feasible.size:
        raise InputError(f"base.K has {n} columns, and its robot {feasible.size} parameters")
    if values.shape != (nb,):
        hint = ": check(robot.with_values(...)) judges standard parameters" * (values.shape == (n,))
        text = f"base parameters have shape {values.shape}, but there are {nb} of them"
        raise InputError(text + hint)
    index, labels = getattr(beta, "index", None), getattr(base, "expressions", None)
    if labels is not None and index is not None and not callable(index):
        # A Series that names its entries must name them in this order.
        labels_given = [str(label) for label in index]
        wrong = [i for i, label in enumerate(labels_given) if label != labels[i]]
        if wrong and labels_given != [str(i) for i in range(nb)]:
            i = wrong[0]
            raise InputError(
                f"base parameter {i} is {labels[i]!r}, but the values given name "
                f"{labels_given[i]!r}",
                entry=i,
            )
    bad = np.flatnonzero(~(np.abs(values) < LARGEST))
    if bad.size:
        i = int(bad[0])
        label = (labels or range(nb))[i]
        raise InputError(f"base parameter {i} ({label}) is {values[i]}", entry=i)
    return values


def _check_values(
    robot: Robot, feasible: FeasibleSet, delta: Array, margin: float, solver: Any
) -> Verdict:
    """The verdict on given standard parameters; constraints on other parameters are left out."""
    described = np.isfinite(delta)
    if not described.any():
        raise InputError(f"robot {robot.name!r} describes no parameter: nothing to check")
    labels = [".".join(name) for name, k in zip(robot.parameter_names, described, strict=True) if k]
    equations = np.eye(robot.size)[described]
    return _check_equations(robot, feasible, equations, delta[described], labels, margin, solver)


def _check_equations(
    robot: Robot,
    feasible: FeasibleSet,
    K: Array,
    beta: Array,
    labels: Sequence[str],
    margin: float,
    solver: Any,
) -> Verdict:
    """The verdict on given linear combinations of standard parameters."""
    question = Question.from_doubles(robot, feasible, K, beta, margin)
    scale = problem_units(robot, feasible, K, beta)
    reference = reference_model(robot, scale).delta
    verdict = Verdict(question, decide(question, scale, reference, solver), scale, tuple(labels))
    suspects = [name for name in verdict.clash if name in feasible.user_constraints]
    if verdict.feasible is False and suspects:
        # A minimal contradictory part of the bounds that the proof names. Consistency of bodies,
        # signs of joint terms and the given values are never left out.
        bounds = feasible.user_constraints

        def is_infeasible(subset: Collection[str]) -> bool:
            part = feasible.without_constraints(bounds - frozenset(subset))
            units = constraint_units(part, scale.mass, scale.length, scale.parameters)
            fewer = replace(question, feasible=part)
            return decide(fewer, units, reference, solver).feasible is False

        # The given values may contradict each other without any bound.
        conflict = () if is_infeasible(()) else filter_contradiction(suspects, is_infeasible)
        verdict = replace(verdict, conflict=conflict)
    return verdict


NAMED = 6  #: Largest number of given values that `Verdict.explain` names.
LONGEST = 60  #: Largest number of characters of a name in `Verdict.explain`.
LINEAR = 1e-3  #: Margin up to which the scale of `Verdict.plot` is linear; it is logarithmic beyond
SHARE = 1e-3  #: Constraints and parameters that weigh less than this in a proof are not named.


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Displayed):
    """Result of a feasibility test, with its proof."""

    question: Question  #: Constraints on parameters or their combinations.
    outcome: ProvedAnswer  #: The answer with its proof.
    scale: Units  #: Units of the margins.
    labels: tuple[str, ...]  #: The kind of the given values.
    #: When bounds that were asked for are involved: a minimal set of them that cannot hold
    #: together; dropping any of these ends their clash.
    conflict: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool | None:
        """The answer; None if neither answer could be proved. On the boundary it is False."""
        return self.outcome.feasible

    @property
    def certificate(self) -> Certificate | None:
        """The proof; ``certificate.verify()`` checks it without any solver."""
        return self.outcome.certificate

    @property
    def _proof(self) -> dict[str, Any]:
        return {} if self.certificate is None else self.certificate.data

    @property
    def consistency(self) -> str:
        """Meaning of feasible: "full" or "semi"."""
        return self.question.feasible.consistency

    @property
    def boundary(self) -> bool:
        """Whether only limiting cases are possible: a rod, a point mass, no mass; up to rounding
        of given inertias.
        """
        return self.status == "boundary"

    @property
    def status(self) -> str:
        """The answer as a word: "feasible", "infeasible", "boundary" or "inconclusive"."""
        if self.certificate is None:
            return "inconclusive"
        if self._impossible_masses:
            return "infeasible"
        return "boundary" if self.outcome.nearly_singular else self.certificate.claim

    @cached_property
    def _impossible_masses(self) -> list[str]:
        """Sentences on given masses that no body has, as of the links of a file."""
        values = dict(zip(self.labels, self.question.values or (), strict=True))
        sentences = []
        for body in self.question.robot.bodies:
            mass, *moments = (values.get(f"{body.name}.{x}") for x in ("m", *SYMBOLS[:6]))
            if mass is not None and mass < 0:
                sentences.append(f"negative mass: {body.name!r} has {float(mass):g} kg")
            elif mass == 0 and any(moments):
                sentences.append(f"{body.name!r} has inertia without mass, which no body has")
        return sentences

    @property
    def margin(self) -> float:
        """Smallest eigenvalue of all constraint matrices, in units of each body's mass and length.

        If base parameters are feasible, it is the margin of `point`, and other points may have a
        larger one. If given values violate constraints by themselves, it is the margin of these
        constraints. Otherwise it is the largest possible margin, as in
        `feasid.problems.feasibility_test`, in the same units.
        """
        return self.outcome.margin

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Solver calls; empty if none was needed."""
        return self.outcome.attempts

    @property
    def point(self) -> Array | None:
        """Standard parameters, (n,), that prove feasibility; they are not an estimate."""
        return self.outcome.delta if self.feasible else None

    @cached_property
    def margins(self) -> dict[str, float]:
        """The margin of each constraint, at the given parameters or at the best ones found."""
        delta = self.outcome.delta
        if delta is None:
            return {}
        feasible = self.question.feasible.with_margin(self.question.margin)
        names = [c.name for c in feasible.constraints]
        return dict(zip(names, self.scale.margins(feasible, delta).tolist(), strict=True))

    def plot(self) -> Figure:
        """Draw the margin of each constraint, or (in red) its weight in a proof of infeasibility.

        Needs the extra "plot".
        """
        from feasid.core.charts import BLUE, GREY, RED, Chart, Panel, Series
        from feasid.core.figures import draw

        margins = self.margins or {k: -v for k, v in self.weights.items()} or {"all": self.margin}
        margins = dict(sorted(margins.items(), key=lambda item: item[1]))
        bars = [
            Series([0.0, value], [row, row], RED if value <= 0 else BLUE, width=7)
            for row, value in enumerate([*margins.values()][::-1])
        ]
        what = "margin" if self.margins or not self.weights else "weight in the proof (negative)"
        panel = Panel(
            bars,
            below=f"{what}, in units of each body's mass and length",
            scales=(LINEAR, ""),
            names=((), [*margins][::-1]),
            lines=((0, 0.0, GREY),),
        )
        height = 0.5 + 0.25 * len(margins)
        return draw(Chart(self.status, "margins of constraints", [panel], 1, height, 8))

    @cached_property
    def weights(self) -> dict[str, float]:
        """Weight of each constraint in a proof of infeasibility, as a share of their sum."""
        feasible = self.question.feasible
        units = [*self.scale.blocks, *(np.sqrt(np.array([u])) for u in self.scale.linear)]
        place = {label: k for k, label in enumerate(self.question.labels)}
        traces = dict[str, Fraction]()  # of integers that may be larger than any double
        for label, triangle in self._proof.get("multipliers", ()):
            k = place[tuple(label)]
            # Places of the diagonal in the upper triangle, row by row.
            corners = np.cumsum([0, *range(len(units[k]), 1, -1)])
            pairs = zip(corners, units[k].tolist(), strict=True)
            trace = sum((exact(triangle[i]) * Fraction(u) ** 2 for i, u in pairs), Fraction(0))
            traces[feasible.constraints[k].name] = trace
        total = sum(traces.values()) or 1
        return {name: float(trace / total) for name, trace in traces.items()}

    @cached_property
    def clash(self) -> tuple[str, ...]:
        """Names of the constraints that contradict each other, the largest weight first."""
        pairs = zip(self._proof.get("tied", ()), self._proof.get("ties", ()), strict=False)
        touched = {j for v, tie in pairs if exact(v) for j, _ in tie["row"]}
        ties = [e.name for e in self.question.feasible.equalities if touched.issuperset(e.columns)]
        heavy = sorted(self.weights, key=lambda name: -self.weights[name])
        return tuple(dict.fromkeys([*ties, *(n for n in heavy if self.weights[n] > SHARE)]))

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Bodies and drives whose constraints contradict each other."""
        feasible = self.question.feasible
        columns = {c.name: c.columns for c in (*feasible.equalities, *feasible.constraints)}
        owners = [feasible.names[int(j)][0] for name in self.clash for j in columns[name]]
        return tuple(dict.fromkeys(owners))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Given values that take part in the contradiction, the largest weight first."""
        if "combination" not in self._proof:
            return ()
        values = [exact(v) for v in self._proof["values"]]
        pairs = zip(self._proof["combination"], values, strict=True)
        terms = [abs(exact(y) * v) for y, v in pairs]
        total = sum(terms) or 1
        shares = np.array([float(term / total) for term in terms])
        order = [int(i) for i in np.argsort(-shares) if shares[i] > SHARE]
        labels = [x for i, x in enumerate(self.labels) if i not in self.outcome.dropped]
        return tuple(f"{labels[i]} = {float(values[i]):.6g}" for i in order)

    @cached_property
    def disagreement(self) -> float:
        """Contradiction among the given equations, if a proof uses only some of them.

        The equations left out agree with the others up to the rounding of K. The value is their
        largest difference at the point of the proof, relative to its largest term; it is zero if
        all equations hold.
        """
        if not self.feasible:
            return 0.0
        *numbers, over = (exact(x) for x in self._proof["point"])
        rows, values = self.question.rows, self.question.values or ()
        worst = 0.0
        for i in self.outcome.dropped:
            terms = [c * numbers[j] / over for j, c in rows[i].items()]
            error = abs(sum(terms) - values[i])
            worst = max(worst, float(error / max(map(abs, [*terms, values[i]]))) if error else 0.0)
        return worst

    @property
    def _describe_disagreement(self) -> list[str]:
        """Sentence on given equations that contradict each other a little."""
        if not self.disagreement:
            return []
        names = tuple(self.labels[i] for i in self.outcome.dropped)
        return [
            f"the given values agree with each other only within {self.disagreement:.1e} of their "
            f"terms; the proof leaves out {_join_names(names, '; ')}, which the others nearly imply"
        ]

    def _explain_inconclusive(self) -> str:
        if not np.isfinite(self.margin):
            return "no solver gave an answer, or given equations contradict each other too little"
        if abs(self.margin) < NEARLY:
            return (
                f"the margin found, {self.margin:.0e}, is less than solvers resolve, {NEARLY:.0e}; "
                "some body is too small compared with the others, or nearly flat"
            )
        rounding = f"rounding of K: {self.outcome.rounding:.1g} for bodies of {HEAVIEST[-1]:.0e} kg"
        if -self.outcome.rounding < self.margin < 0 and np.isfinite(self.outcome.rounding):
            return f"the margin found, {self.margin:.1g}, is less than the {rounding}"
        guess = "feasible, but no point" if self.margin > 0 else "infeasible, but no contradiction"
        return (
            f"a margin of {self.margin:.2g} seems {guess} was found that holds exactly ({rounding})"
        )

    @property
    def outside(self) -> tuple[str, ...]:
        """Constraints that are not affine: satisfied in floating point only, outside the proof."""
        return tuple(c.name for c in self.question.feasible.convex)

    def explain(self) -> str:
        """The verdict in sentences."""
        lines = [
            f"{self.status} under {self.consistency} consistency "
            f"(smallest margin {self.margin:.3g} in units of each body's mass and length)"
        ]
        if self.boundary:
            lines.append("possible only with singular matrices: a rod, a point mass, no mass")
            if self.certificate is not None and self.certificate.claim != "boundary":
                claim = self.certificate.claim
                lines.append(f"the doubles are {claim}, by less than their rounding")
        lines += self._impossible_masses
        lines += self._describe_disagreement
        if self.clash:
            lines.append(f"what clashes: {_join_names(self.clash, ', ')}")
        if self.conflict:
            lines.append(
                f"a minimal set of bounds that cannot hold together: {', '.join(self.conflict)}"
            )
        if self.parameters:
            lines.append(f"with the given values of {_join_names(self.parameters, '; ')}")
        if self.outside:
            lines.append(
                "not affine, and therefore judged in floating point, outside any proof: "
                f"{_join_names(self.outside, ', ')}"
            )
        if self.certificate is None:
            lines.append(f"neither answer could be proved: {self._explain_inconclusive()}; tried:")
            lines += map(str, self.attempts)
        else:
            lines.append("proved in exact rational arithmetic: verdict.certificate.verify()")
            if (limit := self.certificate.limit) is not None:
                lines.append(
                    f"for all parameters in which no body is heavier than {limit['mass']:.0e} kg "
                    f"or reaches further than {limit['length']:g} m from its frame"
                )
        return "\n".join(lines)

    def display(self) -> Display:
        """A short display of the verdict."""
        yes = self.feasible is True
        but = f" but for {self.disagreement:.0e}" if self.disagreement else ""
        answer = {True: "yes", False: "no", None: "undecided"}[self.feasible]
        answer += f", smallest margin {self.margin:.3g}"
        has_proof = self.certificate is not None
        proof = f"{self.status}, exact{but or ' arithmetic'}" if has_proof else "none"
        measures = [
            Measure("physically consistent", answer, ">= 0", yes),
            Measure("proof", proof, "exact", has_proof),
        ]
        remarks = self._describe_disagreement if yes else self.explain().splitlines()[1:]
        hidden = "proved in exact"
        wrong = [f"whose: {_join_names(self.bodies, ', ')}"] if self.bodies else []
        return Display(
            f"verdict: {self.status} under {self.consistency} consistency",
            measures,
            [*wrong, *(line for line in remarks if not line.startswith(hidden))],
            more="more: verdict.explain(), verdict.margins, verdict.certificate.verify()",
        )


def _join_names(names: tuple[str, ...], between: str) -> str:
    shortened = [n if len(n) <= LONGEST else f"{n[: LONGEST - 3]}..." for n in names[:NAMED]]
    return between.join(shortened) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)
