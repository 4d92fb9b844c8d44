"""What a description says about a log's torques: their constants, where they are currents.

A description's inertials are right to some tens of percent. That fixes the factor between the
columns of a log and torques well enough to tell currents and wrong units from newton metres.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.errors import InputError
from feasid.estimation import noise
from feasid.identifiability.base import BaseParameters
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot

INERTIAL_SHARE = 0.3
"""Standard deviation of the description's inertials from a common factor, as a share."""

FACTOR_SHARE = 0.2
"""Standard deviation of that factor: CAD models err in common, by coverings, cables, and infill."""

UNSEEN = 0.5
"""A constant with a larger relative deviation is not told by the logs."""


@checked_methods
@dataclass(frozen=True, eq=False)
class TorqueConstants:
    """Torque per unit of current, per joint."""

    joints: tuple[str, ...]  #: Names of the joints.
    #: Shape (dof,): [N m / A] and their standard deviations, which from a description alone count
    #: what it may be wrong by; NaN where the logs do not determine them.
    constants: Array
    deviations: Array  #: See `constants`.
    beta: Array  #: Shape (nb,): base parameters identified with them.
    #: Whether a known load fixes them, rather than the description's inertials.
    from_load: bool = True
    #: What one unit of each joint's column is [A], 1e-3 where ``units={"tau": "mA"}``; empty for
    #: amperes.
    ampere: tuple[float, ...] = ()

    @property
    def units(self) -> dict[str, float]:
        """As option of `feasid.fit`, with which the same columns are read as torques.

        Joints of `undetermined` are not among them: their columns stay currents.
        """
        ampere = self.ampere or (1.0,) * len(self.joints)
        rows = zip(self.joints, self.constants, ampere, strict=True)
        return {f"tau_{j}": float(k * unit) for j, k, unit in rows if k > 0}

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Joints whose constant the log does not show, or shows as negative."""
        return tuple(j for j, k in zip(self.joints, self.constants, strict=True) if not k > 0)

    def __repr__(self) -> str:
        rows = zip(self.joints, self.constants, self.deviations, strict=True)
        lines = [f"  {j:20} {_describe_constant(k, s)}" for j, k, s in rows]
        if left := self.undetermined:
            measured = [j for j in self.joints if j not in left]
            lines.append(
                f"{', '.join(left)} cannot be read as torques: leave them out of a fit, measured="
                f"{measured}"
            )
        if not self.from_load:
            lines.append(
                f"The description's inertials fix them, taken as right to {FACTOR_SHARE:.0%} in "
                f"common and {INERTIAL_SHARE:.0%} per body; a log with a known load (loaded=, "
                "load=) fixes them better."
            )
        return "\n".join(["torque constants", *lines])


def _describe_constant(constant: float, deviation: float) -> str:
    if not np.isfinite(constant):
        return f"not determined to {UNSEEN:.0%}"
    wrong = ": negative, its column counts the other way or the load is on another body (body=)"
    return f"{constant:10.4g} +- {deviation:.2g} N m/A{wrong if constant < 0 else ''}"


SCALES = (0.2, 5.0)
"""Factor between a log's torques and the description's, in the median over joints, beyond which it
is no description that is wrong: of seven robots recorded in N m it is .5 to 1.3, in counts of a
motor .6, and .09 to .1 in amperes."""

FEWEST = 2
"""Joints whose factor is determined, from which their median is believed."""


def scale_note(log: Reduced, base: BaseParameters, units: Mapping[str, Any] | None) -> Note | None:
    """A warning where torques are a multiple of what the description says; None where not.

    Nothing is said where `units` gives factors of torques, nor without inertials to compare with.
    """
    if any(
        key.partition("_")[0] == "tau" and not isinstance(u, str)
        for key, u in (units or {}).items()
    ):
        return None
    try:
        constants = np.abs(constants_of_description(log, base).constants)
    except InputError:
        return None
    known = np.isfinite(constants) & (constants > 0)
    if known.sum() < FEWEST:
        return None
    factor = 1.0 / float(np.median(constants[known]))
    if SCALES[0] < factor < SCALES[1]:
        return None
    joints = [j for j, k in zip(base.robot.coordinates, known, strict=True) if k]
    parts = ", ".join(f"{j} {1 / k:.2g}" for j, k in zip(joints, constants[known], strict=True))
    text = (
        f"the torques are {factor:.2g} times what the description says ({parts}): currents in A, "
        "whose constants feasid.torque_constants finds and units= takes, another unit, the motors' "
        "side of the gears, or wrong masses in the description; units={'tau': 1.0} says that they "
        "are N m"
    )
    return Note(text, "scale", level="warning", confirmed=True, factor=factor, joints=joints)


def constants_of_description(log: Reduced, base: BaseParameters) -> TorqueConstants:
    """Constants that make a log of currents agree with the description's inertials."""
    robot = base.robot
    values = robot.values.copy()
    inertial = robot.inertial_columns.ravel()
    if np.isnan(values[inertial]).any():
        raise InputError(
            f"the description of robot {robot.name!r} lacks inertials: give a known load, loaded= "
            "and load="
        )
    own = np.zeros(robot.size)
    own[inertial] = values[inertial]
    K = np.asarray(base.K, dtype=np.float64)
    rigid, others = K @ own, np.setdiff1d(np.arange(robot.size), inertial)
    constants, spread = np.full(robot.dof, np.nan), np.full(robot.dof, np.nan)
    for j, r, rho in whitened_joint_equations(log):
        columns = np.c_[r @ rigid, r @ K[:, others]]
        size = np.linalg.norm(columns, axis=0)
        columns = columns[:, size > 0] / size[size > 0]
        if size[0] == 0:
            continue
        found = np.linalg.lstsq(columns, rho, rcond=1e-10)[0]
        per = found[0] / size[0]
        constants[j] = 1.0 / per if per else np.nan
        deviation = np.sqrt(np.linalg.pinv(columns.T @ columns)[0, 0]) / size[0]
        projection = np.linalg.pinv(columns, rcond=1e-10)[0] / size[0]
        bodies = [projection @ (r @ (K[:, c] @ own[c])) for c in robot.inertial_columns]
        wrong = np.hypot(FACTOR_SHARE, INERTIAL_SHARE * np.linalg.norm(bodies))
        noisy = deviation / abs(per) if per else np.nan
        spread[j] = abs(constants[j]) * np.hypot(noisy, wrong)
    return build_torque_constants(robot, constants, spread, rigid, from_load=False)


def whitened_joint_equations(reduced: Reduced) -> list[tuple[int, Array, Array]]:
    """Per joint its equations of all base parameters, in units of the noise of its current."""
    _, beta = noise.estimate_noise(reduced)
    spread = reduced.residuals(beta) / np.sqrt(max(reduced.rows, 1))
    spread = np.maximum(
        spread, noise.SMALLEST_DEVIATION * reduced.torque_norms / np.sqrt(max(reduced.rows, 1))
    )
    out = []
    for j, (support, triangle) in enumerate(zip(reduced.supports, reduced.triangles, strict=True)):
        r = np.zeros((len(support), len(reduced.columns)))
        r[:, list(support)] = triangle[:-1, :-1] / max(spread[j], noise.TINY)
        out.append((j, r, triangle[:-1, -1] / max(spread[j], noise.TINY)))
    return out


def build_torque_constants(
    robot: Robot, constants: Array, spread: Array, beta: Array, from_load: bool = True
) -> TorqueConstants:
    """The constants; those that the log hardly shows are NaN."""
    known = spread < UNSEEN * np.abs(constants)
    return TorqueConstants(
        robot.coordinates,
        np.where(known, constants, np.nan),
        np.where(known, spread, np.nan),
        beta,
        from_load,
    )
