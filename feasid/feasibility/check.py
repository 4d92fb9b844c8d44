"""Can these parameters exist? The feasibility test, with a proof of either answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array, Mask
from feasid.certificate import exact
from feasid.errors import InputError
from feasid.feasibility.constraints.sets import FeasibleSet, equality_error, feasible_set
from feasid.feasibility.constraints.ties import Ties
from feasid.feasibility.constraints.units import Units, assemble, units
from feasid.feasibility.program.program import Attempt
from feasid.feasibility.program.reference import reference
from feasid.feasibility.proof.claim import Certificate, Claim, decimal, with_margin
from feasid.feasibility.proof.conflict import asked_for, minimal_conflict
from feasid.feasibility.proof.decide import decide
from feasid.feasibility.proof.refutation import refutation
from feasid.robot.description import Robot

NAMED = 6
"""Given values that `Verdict.explain` names at most."""

SHARE = 1e-3
"""Constraints and parameters that weigh less than this in a proof are not named."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer, and why.

    Attributes
    ----------
    feasible : bool or None
        None: neither answer could be proved.
    consistency : {"full", "semi"}
        What feasible means; see `feasid.feasibility.constraints.sets.feasible_set`.
    margin : float
        Smallest eigenvalue over all constraint matrices, in units of each body's mass and length:
        of the given parameters, or the largest possible one for given base parameters.
    margins : dict of str to float
        The same per constraint, at the given or the best parameters.
    bodies : tuple of str
        Bodies and drives whose constraints clash, the heaviest in the proof first.
    clash : tuple of str
        The constraints that clash, by name.
    conflict : tuple of str
        When bounds that were asked for are involved: a minimal set of them that cannot hold
        together; dropping any of these ends their clash.
    parameters : tuple of str
        What is given and takes part in the clash.
    certificate : Certificate or None
        ``certificate.verify()`` checks the proof without any solver.
    attempts : tuple of Attempt
        Solver calls; empty when none was needed.
    point : ndarray, shape (n,), or None
        Standard parameters that show feasibility: those given, or some that give the base
        parameters; not an estimate of anything.
    """

    feasible: bool | None
    consistency: str
    margin: float
    margins: dict[str, float]
    bodies: tuple[str, ...]
    clash: tuple[str, ...]
    conflict: tuple[str, ...]
    parameters: tuple[str, ...]
    certificate: Certificate | None
    attempts: tuple[Attempt, ...] = ()
    point: Array | None = None

    @property
    def status(self) -> str:
        """The answer as a word: "feasible", "infeasible" or "inconclusive"."""
        words: dict[bool | None, str] = {True: "feasible", False: "infeasible"}
        return words.get(self.feasible, "inconclusive")

    def explain(self) -> str:
        """The verdict in sentences."""
        lines = [
            f"{self.status} under {self.consistency} consistency "
            f"(smallest margin {self.margin:.3g} in units of each body's mass and length)"
        ]
        if self.clash:
            lines.append(f"what clashes: {', '.join(self.clash)}")
        if self.conflict:
            lines.append(
                f"a minimal set of bounds that cannot hold together: {', '.join(self.conflict)}"
            )
        if self.parameters:
            more = f" and {len(self.parameters) - NAMED} more" * (len(self.parameters) > NAMED)
            lines.append(f"with the given values of {'; '.join(self.parameters[:NAMED])}{more}")
        if self.certificate is not None:
            proved = "proved in exact rational arithmetic: verdict.certificate.verify()"
            if self.certificate.limit is not None:
                proved += (
                    f", for all parameters in which no body is larger than "
                    f"{self.certificate.limit:.0e} units"
                )
            lines.append(proved)
        else:
            lines += ["neither answer could be proved; tried:", *map(str, self.attempts)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        because = f": {', '.join(self.bodies)}" if self.bodies else ""
        return f"<Verdict: {self.status} ({self.consistency}), margin {self.margin:.3g}{because}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.explain())}</pre>"


def check(
    subject: Any,
    base: Any = None,
    *,
    consistency: str = "full",
    feasible: FeasibleSet | None = None,
    margin: float = 0.0,
    solvers: Sequence[Any] | None = None,
    **bounds: Any,
) -> Verdict:
    """Decide whether parameters can exist, and prove the answer.

    Parameters
    ----------
    subject : Robot, Fit, or array_like of shape (nb,)
        A robot is judged by its own parameters (of a link it does not describe nothing is asked),
        a fit by the parameters it found, an array as base parameters of `base`: BPFT, eq. (51) of
        Sousa and Cortesao (2014).
    base : BaseParameters, optional
        What the entries of an array mean.
    consistency : {"full", "semi"}
    feasible : FeasibleSet, optional
        Instead of `consistency` and `bounds`.
    margin : float
        Absolute margin in SI numbers on every constraint, the paper's epsilon.
    solvers : sequence of (solver, form, backend), optional
        The ladder of attempts where a solver is needed.
    **bounds
        Further constraints, as in `feasid.feasibility.constraints.sets.feasible_set`.

    Returns
    -------
    Verdict

    Raises
    ------
    InputError
        Names the entry that is not finite, or says how many were expected.

    Examples
    --------
    >>> import feasid
    >>> body = feasid.Body("link", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])
    >>> feasid.check(feasid.Robot((body,))).feasible
    False
    >>> feasid.check(feasid.Robot((body,)), consistency="semi").feasible
    True
    """
    if not np.isfinite(margin) or margin < 0:
        raise InputError(f"margin must be a non-negative number, not {margin}")
    fitted = getattr(subject, "solution", None)
    if fitted is not None:
        feasible = feasible or subject.feasible
        return _of_values(subject.robot, with_margin(feasible, margin), fitted.delta, solvers)
    if isinstance(subject, Robot):
        allowed = feasible or feasible_set(subject, consistency, **bounds)
        return _of_values(subject, with_margin(allowed, margin), subject.values, solvers)
    if base is None:
        raise InputError("base parameters mean nothing without base=feasid.base_parameters(robot)")
    allowed = with_margin(feasible or feasible_set(base.robot, consistency, **bounds), margin)
    beta = check_base_values(subject, base, allowed)
    K = np.asarray(base.K, dtype=np.float64)
    labels = getattr(base, "expressions", None) or [str(i) for i in range(len(K))]
    return _of_equations(base.robot, allowed, K, beta, labels, solvers)


def check_base_values(beta: npt.ArrayLike, base: Any, feasible: FeasibleSet) -> Array:
    """Base parameters as a finite vector of the right length, or say which entry is wrong."""
    try:
        values = np.asarray(beta, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"base parameters must be numbers: {error}") from error
    nb, n = np.shape(base.K)
    if n != feasible.size or feasible.names != base.robot.parameter_names:
        raise InputError(
            f"K has {n} columns and belongs to robot {base.robot.name!r} with {base.robot.size} "
            f"parameters, the constraints to one with {feasible.size}"
        )
    if values.shape != (nb,):
        raise InputError(f"base parameters have shape {values.shape}, but there are {nb} of them")
    index, labels = getattr(beta, "index", None), getattr(base, "expressions", None)
    if labels is not None and index is not None and not callable(index):
        # A Series that names its entries must name them in this order.
        given = [str(label) for label in index]
        wrong = [i for i, label in enumerate(given) if label != labels[i]]
        if wrong and given != [str(i) for i in range(nb)]:
            i = wrong[0]
            raise InputError(
                f"base parameter {i} is {labels[i]!r}, but the values given name {given[i]!r}",
                entry=i,
            )
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        labels = getattr(base, "expressions", None) or range(nb)
        raise InputError(
            f"base parameter {int(bad[0])} ({labels[int(bad[0])]}) is {values[bad[0]]}",
            entry=int(bad[0]),
        )
    return values


def _of_values(
    robot: Robot, feasible: FeasibleSet, delta: Array, solvers: Sequence[Any] | None
) -> Verdict:
    """Given standard parameters; no solver unless a bound mixes given and unknown ones."""
    known = np.isfinite(delta)
    if not known.any():
        raise InputError(f"robot {robot.name!r} describes no parameter: nothing to check")
    touched = [known[c.columns] for c in feasible.constraints]
    n = robot.size
    scale = units(robot, feasible, np.eye(n)[known], delta[known])
    if any(t.any() and not t.all() for t in touched):
        labels = [".".join(name) for name, k in zip(robot.parameter_names, known, strict=True) if k]
        return _of_equations(robot, feasible, np.eye(n)[known], delta[known], labels, solvers)
    full = np.where(known, delta, reference(robot, scale).delta)
    margins = _margins(feasible, scale, full)
    broken = feasible.violations(full)
    worst = min(margins.values())
    if any(e.name in broken for e in feasible.equalities):
        return _untied(robot, feasible, full, known, margins, broken)
    if broken:
        certificate = refutation(feasible, full, known)
        names = _owners(feasible, broken)
        return Verdict(
            False, feasible.consistency, worst, margins, names, broken, (), (), certificate
        )
    columns = tuple(np.flatnonzero(known).tolist())
    claim = Claim.of(feasible, np.eye(n)[list(columns)], delta[known])
    certificate = claim.feasibility(full)
    return Verdict(
        True, feasible.consistency, worst, margins, (), (), (), (), certificate, (), full
    )


def _untied(
    robot: Robot,
    feasible: FeasibleSet,
    delta: Array,
    known: Mask,
    margins: dict[str, float],
    broken: tuple[str, ...],
) -> Verdict:
    """Given parameters that are not what they are said to be: a proof by one of them."""
    tie = next(e for e in feasible.equalities if e.name in broken)
    claim = Claim.of(feasible, np.eye(robot.size)[known], delta[known])
    signs = [Fraction(1), *[Fraction(-int(tie.sign))] * (len(tie.columns) - 1)]
    row = dict(zip(tie.columns, signs, strict=True))
    error = equality_error(tie, [decimal(d) for d in delta])
    claim = replace(
        claim,
        rows=(*claim.rows, row),
        values=(*claim.values, Fraction(0) if len(signs) > 1 else decimal(tie.value)),
        lead=None,
    )
    push = Fraction(1 if error > 0 else -1)
    y = [-push * row.get(int(j), Fraction(0)) for j in np.flatnonzero(known)]
    zeros = [[[Fraction(0)] * b.size for _ in range(b.size)] for b in feasible.blocks]
    certificate = claim.infeasibility(
        [*y, push], [*zeros, *([[Fraction(0)]] for _ in feasible.linear)]
    )
    owners = tuple(dict.fromkeys(robot.parameter_names[j][0] for j in tie.columns))
    worst = min(margins.values())
    return Verdict(False, feasible.consistency, worst, margins, owners, broken, (), (), certificate)


def _of_equations(
    robot: Robot,
    feasible: FeasibleSet,
    K: Array,
    beta: Array,
    labels: Sequence[str],
    solvers: Sequence[Any] | None,
) -> Verdict:
    """Given linear combinations of standard parameters: the margin problem decides."""
    scale = units(robot, feasible, K, beta)
    aim = reference(robot, scale).delta
    ties = Ties.of(feasible)
    if feasible.equalities:
        K, beta, kept = ties.equations(K, beta)
        feasible, aim = ties.substituted(feasible), aim[ties.roots]
        scale = assemble(feasible, scale.mass, scale.length, scale.parameters[ties.roots])
        labels = [labels[i] for i in kept]
    # Motion says what proofs can reach as long as every body has its own parameters.
    mover = robot if feasible.names == robot.parameter_names else None
    outcome = decide(feasible, K, beta, scale, aim, mover, solvers)
    margins = {} if outcome.delta is None else _margins(feasible, scale, outcome.delta)
    clash: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    if outcome.feasible is False:
        weights = {
            c.name: float(w)
            for c, w in zip(
                feasible.constraints,
                (*(np.trace(Z) for Z in outcome.blocks), *outcome.prices),
                strict=True,
            )
        }
        heavy = sorted(weights, key=lambda name: -weights[name])
        negative = _negative_alone(feasible, K, beta)
        others = (c for c in heavy if weights[c] > SHARE * sum(weights.values()))
        clash = tuple(dict.fromkeys([*negative, *others]))
        parameters = _involved(outcome.certificate, beta, labels)
        if not asked_for(feasible).isdisjoint(clash):
            conflict = minimal_conflict(feasible, K, beta, scale, aim, clash)
    return Verdict(
        outcome.feasible,
        feasible.consistency,
        outcome.margin,
        margins,
        _owners(feasible, clash),
        clash,
        conflict,
        parameters,
        outcome.certificate,
        outcome.attempts,
        ties.expanded(outcome.delta) if outcome.feasible and outcome.delta is not None else None,
    )


def _margins(feasible: FeasibleSet, scale: Units, delta: Array) -> dict[str, float]:
    names = [c.name for c in feasible.constraints]
    values = [*scale.block_margins(feasible, delta), *scale.linear_margins(feasible, delta)]
    return dict(zip(names, map(float, values), strict=True))


def _owners(feasible: FeasibleSet, names: Sequence[str]) -> tuple[str, ...]:
    """The bodies or drives of these constraints, each once, in order."""
    columns = {c.name: c.columns for c in feasible.constraints}
    owners = [feasible.names[int(j)][0] for name in names for j in columns[name]]
    return tuple(dict.fromkeys(owners))


def _negative_alone(feasible: FeasibleSet, K: Array, beta: Array) -> list[str]:
    """Constraints on a single parameter that a given value breaks by itself."""
    alone = {
        int(np.flatnonzero(row)[0]): i for i, row in enumerate(K) if np.count_nonzero(row) == 1
    }
    out = []
    for c in feasible.linear:
        if len(c.columns) == 1 and int(c.columns[0]) in alone:
            i = alone[int(c.columns[0])]
            value = beta[i] / K[i, c.columns[0]]
            if c.coefficients[0] * value + c.constant < 0:
                out.append(c.name)
    return out


def _involved(
    certificate: Certificate | None, beta: Array, labels: Sequence[str]
) -> tuple[str, ...]:
    """Which given values carry the proof, heaviest first."""
    if certificate is None:
        return ()
    shares = np.abs([float(exact(y)) for y in certificate.data["combination"]] * beta)
    order = [int(i) for i in np.argsort(-shares) if shares[i] > SHARE * shares.sum()]
    return tuple(f"{labels[i]} = {beta[i]:.6g}" for i in order)
