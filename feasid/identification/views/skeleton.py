"""The robot drawn from its kinematics, with centres of mass and inertia ellipsoids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.figures import BLUE, GREY, RED, YELLOW, picture
from feasid.identification.fitted import Fitted
from feasid.robot.description import Robot
from feasid.robot.inertia import to_mass_com_inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RINGS, SPOKES = 9, 12
"""Lines of an ellipsoid."""


def bodies(fit: Fitted, pose: Mapping[str, float] | None = None) -> Figure:
    """The robot before and after: joints, links, centres of mass, equimomental ellipsoids.

    An ellipsoid is that of constant density with the body's mass and inertia: it exists exactly
    when the body can. Bodies whose inertia in the description no body can have are drawn as a
    cross. No meshes are needed.
    """
    figure = picture(11, 5.5, "the robot with centres of mass and inertia ellipsoids")
    models = (("description", fit.description, YELLOW), ("identified", fit.robot, BLUE))
    for place, (title, robot, color) in enumerate(models):
        axis: Any = figure.add_subplot(1, 2, place + 1, projection="3d")
        points = _draw(axis, robot, color, pose)
        _equal(axis, points)
        axis.set_title(title, fontsize=10)
        axis.tick_params(labelsize=7)
    return figure


def _draw(axis: Any, robot: Robot, color: str, pose: Mapping[str, float] | None) -> Array:
    """One robot; returns the points that must be in view, shape (points, 3)."""
    frames = robot.pose(pose)
    points = [np.zeros(3)]
    for body, ten in zip(robot.bodies, robot.values[robot.inertial_columns], strict=True):
        rotation, position = frames[body.name]
        start = np.zeros(3) if body.parent is None else frames[body.parent][1]
        axis.plot(*np.transpose([start, position]), color=GREY, lw=2.5, solid_capstyle="round")
        axis.plot(*position[:, None], "o", color=GREY, ms=4)
        points.append(position)
        if not np.isfinite(ten).all() or ten[9] == 0:
            continue
        mass, com, inertia = to_mass_com_inertia(ten)
        centre = position + rotation @ com
        points.append(centre)
        axes = ellipsoid(float(mass), inertia)
        if axes is None:
            axis.plot(*centre[:, None], "x", color=RED, ms=10, mew=2)
            continue
        axis.plot(*centre[:, None], "o", color=color, ms=5)
        x, y, z = centre[:, None, None] + np.einsum("ij,jkl->ikl", rotation @ axes, _sphere())
        axis.plot_wireframe(x, y, z, color=color, lw=0.5, alpha=0.7)
    return np.array(points)


def ellipsoid(mass: float, inertia: Array) -> Array | None:
    """Semi-axes as columns in the body's axes [m]; None when no body has this inertia.

    The second moments of an ellipsoid of constant density are ``m a^2 / 5``.
    """
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(second)
    if mass <= 0 or values[0] < 0:
        return None
    return np.asarray(vectors * np.sqrt(5 * values / mass))


def _sphere() -> Array:
    """Points of the unit sphere, shape (3, rings, spokes)."""
    up, around = np.meshgrid(np.linspace(0, np.pi, RINGS), np.linspace(0, 2 * np.pi, SPOKES))
    return np.array([np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)])


def _equal(axis: Any, points: Array) -> None:
    """The same scale along all axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    centre, half = (low + high) / 2, max(float((high - low).max()), 1e-3) * 0.6
    for name, c in zip("xyz", centre, strict=True):
        getattr(axis, f"set_{name}lim")(c - half, c + half)
        getattr(axis, f"set_{name}label")(f"{name} [m]", fontsize=8)
    axis.set_box_aspect((1, 1, 1))
