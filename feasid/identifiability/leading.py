"""Which parameters lead the base parameters: the order of preference, and what is unknown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from feasid.errors import InputError, did_you_mean
from feasid.identifiability.coefficients import Coefficients, Index
from feasid.identifiability.echelon import Echelon
from feasid.identifiability.exact import RankCheck, certify
from feasid.identifiability.nullspace import Recursion
from feasid.identifiability.reordered import Reordered
from feasid.identifiability.restricted import CLEAR_GAP, Restricted
from feasid.identifiability.tables import ROWS, parameter_column
from feasid.robot.description import Robot
from feasid.robot.inertia import SYMBOLS
from feasid.robot.known import Equality, Unknowns


def leading(run: Recursion, order: str | Sequence[str], given: Sequence[Equality]) -> Coefficients:
    """The echelon form in this order of preference."""
    if isinstance(order, str) and order not in ("left", "paper"):
        hint = did_you_mean(order, ("left", "paper"))
        raise InputError(f"order {order!r} is not known{hint}: 'left', 'paper' or names")
    if not run.robot.is_tree and (run.measured is not None or run.held):
        raise InputError(
            f"the joints of robot {run.robot.name!r} are coupled or in loops: measured= and held= "
            "are for robots whose joints move by themselves"
        )
    within = ROWS if order == "paper" else None
    if not isinstance(order, str) and sorted(order) == sorted(ROWS):
        within = tuple(order)
    if given or not run.robot.is_tree:
        unknowns = Unknowns.after(run.robot.size, given)
        return Restricted(Echelon(run), unknowns, _preference(run.robot, order, within))
    if within is not None or isinstance(order, str):
        return Coefficients(Echelon(run, within))
    return Reordered(Echelon(run), _preference(run.robot, order, None))


def _preference(robot: Robot, order: str | Sequence[str], within: Sequence[str] | None) -> Index:
    """All columns, the preferred ones first."""
    columns = np.arange(robot.size)
    if within is not None:
        for own in robot.inertial_columns:
            columns[own] = own[[SYMBOLS.index(symbol) for symbol in within]]
    elif not isinstance(order, str):
        first = [parameter_column(robot, name) for name in order]
        columns = np.array([*dict.fromkeys([*first, *columns.tolist()])], dtype=np.intp)
    return columns


def certainty(coefficients: Coefficients) -> RankCheck:
    """Whether exact arithmetic confirms the ranks; those of restricted ones are numerical."""
    if isinstance(coefficients, Restricted):
        return RankCheck(False, f"the rank is numerical, with a gap of {coefficients.gap:.1e}")
    return certify(coefficients.echelon, coefficients.blocks)


def doubtful_rank(coefficients: Coefficients) -> tuple[str, ...]:
    """A sentence where a numerical rank is not clear."""
    if not isinstance(coefficients, Restricted) or coefficients.gap >= CLEAR_GAP:
        return ()
    return (
        f"the count is numerical, and the singular values on either side of the rank differ by "
        f"{coefficients.gap:.1e} only",
    )
