"""A finite reference model, towards which the part that data cannot see is chosen.

Bodies whose own inertials are usable keep them. The others get a generic one: the unit mass and
length of `feasid.feasibility.constraints.units`, spread like a ball about the body frame's origin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.certificate import SIGNED
from feasid.core.arrays import Array, Mask
from feasid.feasibility.constraints.units import Units, described
from feasid.robot import inertia
from feasid.robot.description import Robot


@dataclass(frozen=True, eq=False)
class Reference:
    """A strictly consistent model.

    Attributes
    ----------
    delta : ndarray, shape (n,)
        Standard parameters; joint terms at one unit, those of either sign at zero.
    from_description : ndarray of bool, shape (n_bodies,)
        Which bodies kept the description's own inertials.
    """

    delta: Array
    from_description: Mask

    @property
    def tie_break(self) -> str:
        """Towards what the unseen part is chosen: "description", "centre" or "mixed"."""
        if self.from_description.all():
            return "description"
        return "mixed" if self.from_description.any() else "centre"


def generic_body(mass: float, length: float) -> Array:
    """Ten parameters of a body with second moments m l^2 / 10 about its frame's origin."""
    return inertia.from_pseudo_inertia(mass * np.diag([*[length**2 / 10] * 3, 1.0]))


def reference(robot: Robot, scale: Units, *, inertials: bool = True) -> Reference:
    """The reference model of a robot in these units; without `inertials` of generic bodies only."""
    delta = np.zeros(robot.size)
    known = described(robot) & inertials
    for i, columns in enumerate(robot.inertial_columns):
        delta[columns] = generic_body(scale.mass[i], scale.length[i])
        if known[i]:
            delta[columns] = robot.values[columns]
        rotor = robot.bodies[i].rotor
        if rotor is not None:
            body = generic_body(scale.mass[i], scale.length[i])
            delta[robot.rotor_columns(i)] = body[[0, 5, 8, 9]] if rotor.symmetric else body
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            given = robot.values[column]
            signed = symbol in SIGNED
            usable = np.isfinite(given) and (given > 0 or not signed)
            delta[column] = given if usable else float(signed) * scale.parameters[column]
    return Reference(delta, known)
