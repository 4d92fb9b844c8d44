"""Can these parameters exist? The feasibility test, with a proof of either answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.feasibility.constraints.units import units
from feasid.feasibility.program.reference import reference
from feasid.feasibility.proof.conflict import minimal_conflict
from feasid.feasibility.proof.decide import decide
from feasid.feasibility.proof.question import Question
from feasid.feasibility.verdict import Verdict
from feasid.formats.load import load_robot
from feasid.identifiability.base import base_parameters
from feasid.options.complete import completed, documented, select_options
from feasid.options.tables import BoundOptions, CheckOptions
from feasid.robot.description import Robot

LARGEST = 1e50
"""No parameter is beyond this: products of a few still fit doubles."""


@documented(CheckOptions)
def check(
    subject: Any,
    base: Any = None,
    *,
    feasible: FeasibleSet | None = None,
    **options: Unpack[CheckOptions],
) -> Verdict:
    """Decide whether parameters can exist, and prove the answer.

    Parameters
    ----------
    subject : Robot, path, Fit, or array_like of shape (nb,)
        A robot, or the file of one, is judged by its own parameters (of a link it does not
        describe nothing is asked), a fit by the parameters it found, an array as base parameters
        of `base`: BPFT, eq. (51) of Sousa and Cortesao (2014).
    base : BaseParameters, Robot or path, optional
        What the entries of an array mean.
    feasible : FeasibleSet, optional
        Instead of consistency and bounds.
    **options
        A fit must keep the bounds that it was fitted with, too.

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
    chosen = completed(CheckOptions, options, "check")
    consistency, margin, solver = (chosen[k] for k in ("consistency", "margin", "solver"))
    bounds = select_options(BoundOptions, options)
    fitted = getattr(subject, "solution", None)
    if fitted is not None:
        allowed = _refined(subject.feasible, subject.robot, consistency, feasible, bounds)
        return _of_values(subject.robot, allowed, fitted.delta, margin, solver)
    if isinstance(subject, str | Path):
        subject = load_robot(subject)
    if isinstance(subject, Robot):
        allowed = allowed_set(subject, consistency, feasible, bounds)
        return _of_values(subject, allowed, subject.values, margin, solver)
    base = base_of(base)
    allowed = allowed_set(base.robot, consistency, feasible, bounds)
    beta = check_base_values(subject, base, allowed)
    K = np.asarray(base.K, dtype=np.float64)
    labels = getattr(base, "expressions", None) or [str(i) for i in range(len(K))]
    return _of_equations(base.robot, allowed, K, beta, labels, margin, solver)


def allowed_set(
    robot: Robot,
    consistency: str | None,
    feasible: FeasibleSet | None,
    bounds: Mapping[str, Any],
) -> FeasibleSet:
    """The set that these options describe.

    Raises
    ------
    InputError
        Names an unknown option, and options that `feasible` would make void.
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
    return feasible


def _refined(
    fitted: FeasibleSet,
    robot: Robot,
    consistency: str | None,
    feasible: FeasibleSet | None,
    bounds: Mapping[str, Any],
) -> FeasibleSet:
    """What a fit was fitted with, and what is asked of it now."""
    if feasible is not None:
        return allowed_set(robot, consistency, feasible, bounds)
    now = allowed_set(robot, consistency or fitted.consistency, None, bounds)
    return now.also(fitted)


def base_of(base: Any) -> Any:
    """Base parameters from what is given as `base=`.

    Raises
    ------
    InputError
        Says what to pass.
    """
    if isinstance(base, str | Path):
        base = load_robot(base)
    if isinstance(base, Robot):
        return base_parameters(base)
    if base is None:
        raise InputError(
            "base parameters mean nothing without base=feasid.base_parameters(robot), or the robot"
        )
    if not hasattr(base, "K") or not hasattr(base, "robot"):
        raise InputError(
            f"base must be base parameters, as feasid.base_parameters(robot) or those of a fit, or "
            f"a robot; {type(base).__name__} does not say what its numbers mean"
        )
    return base


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
    bad = np.flatnonzero(~(np.abs(values) < LARGEST))
    if bad.size:
        labels = getattr(base, "expressions", None) or range(nb)
        raise InputError(
            f"base parameter {int(bad[0])} ({labels[int(bad[0])]}) is {values[bad[0]]}",
            entry=int(bad[0]),
        )
    return values


def _of_values(
    robot: Robot,
    feasible: FeasibleSet,
    delta: Array,
    margin: float,
    solver: Any,
) -> Verdict:
    """Given standard parameters; of constraints on none of them nothing is asked."""
    known = np.isfinite(delta)
    if not known.any():
        raise InputError(f"robot {robot.name!r} describes no parameter: nothing to check")
    labels = [".".join(name) for name, k in zip(robot.parameter_names, known, strict=True) if k]
    equations = np.eye(robot.size)[known]
    return _of_equations(robot, feasible, equations, delta[known], labels, margin, solver)


def _of_equations(
    robot: Robot,
    feasible: FeasibleSet,
    K: Array,
    beta: Array,
    labels: Sequence[str],
    margin: float,
    solver: Any,
) -> Verdict:
    """Given linear combinations of standard parameters."""
    question = Question.of(robot, feasible, K, beta, margin)
    scale = units(robot, feasible, K, beta)
    aim = reference(robot, scale).delta
    outcome = decide(question, scale, aim, solver)
    verdict = Verdict(question, outcome, scale, tuple(labels))
    suspects = [name for name in verdict.clash if name in feasible.asked]
    if verdict.feasible is False and suspects:
        conflict = minimal_conflict(question, scale, aim, suspects, solver)
        verdict = replace(verdict, conflict=conflict)
    return verdict
