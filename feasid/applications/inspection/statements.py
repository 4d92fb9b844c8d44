"""What certificates can be about: statements of a robot, base parameters or the fit of a log.

Each is computed again from what the reader has, and a certificate is compared with it
(`feasid.parameters.feasibility.proof.binding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from feasid.core.arrays import Array
from feasid.options.complete import select_options
from feasid.options.tables import BoundOptions
from feasid.parameters.feasibility.check import check_base_values, feasible_set_from_options
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.proof.binding import HeldStatement
from feasid.parameters.feasibility.proof.question import ExactData, Question
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.fit import fit
from feasid.robot.description import Robot


def statements_of_log(
    log: str, robot: Robot, about: str, options: Mapping[str, Any], margin: float
) -> Iterator[HeldStatement]:
    """The fit of a log: its model is feasible, and no feasible model fits much better."""
    fitted = fit(log, robot, **options)
    problem = fitted.solution.problem
    base, K = problem.base, np.asarray(problem.base.K, dtype=np.float64)
    question = Question.from_doubles(base.robot, problem.feasible, K, None, problem.margin or 0.0)
    data = ExactData.from_doubles(problem.R, problem.rho, fitted.triangle[2])
    yield HeldStatement(question, about, data)
    about = f"the fit of {about}"
    yield from _statements_of_model(fitted.robot, fitted.feasible, fitted.delta, about, margin)


def statements_of_base(
    values: pd.Series[float],
    base: BaseParameters,
    about: str,
    options: Mapping[str, Any],
    margin: float,
) -> Iterator[HeldStatement]:
    """Base parameters: whether they are feasible, and the closest feasible ones."""
    allowed = _allowed_set(base.robot, options)
    K = np.asarray(base.K, dtype=np.float64)
    beta = check_base_values(values, base, allowed)
    yield HeldStatement(Question.from_doubles(base.robot, allowed, K, beta, margin), about)
    distance = Question.from_doubles(base.robot, allowed, K, None, margin)
    yield HeldStatement(distance, about, ExactData.from_doubles(np.eye(len(K)), beta))


def statements_of_robot(
    robot: Robot, about: str, options: Mapping[str, Any], margin: float
) -> Iterator[HeldStatement]:
    """The robot's own values."""
    allowed = _allowed_set(robot, options)
    yield from _statements_of_model(robot, allowed, robot.values, about, margin)


def _allowed_set(robot: Robot, options: Mapping[str, Any]) -> FeasibleSet:
    bounds = select_options(BoundOptions, options)
    return feasible_set_from_options(robot, options.get("consistency"), None, bounds)


def _statements_of_model(
    robot: Robot, feasible: FeasibleSet, delta: Array, about: str, margin: float
) -> Iterator[HeldStatement]:
    """Standard parameters, as far as they are known."""
    known = np.isfinite(delta)
    if known.any():
        selection = np.eye(robot.size)[known]
        question = Question.from_doubles(robot, feasible, selection, delta[known], margin)
        yield HeldStatement(question, about)
