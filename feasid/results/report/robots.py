"""Robots in space, an ellipsoid for each body: of a fit described, fitted and by least squares.

An ellipsoid of constant density has the body's mass and inertia; it exists exactly when the body
is physically consistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.inertia import to_mass_com_inertia
from feasid.robot.known import equalities

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.fitted import FittedModel
    from feasid.robot.description import Robot

AZIMUTH, ELEVATION = -1.0, 0.5
"""Direction from which pages show a robot before a reader turns it [rad]."""

HALF_WIDTH = 100.0  #: Of a page's picture, in its own units.

LARGE = 5.0  #: Size of a body, over the median, that a picture need not hold.


@dataclass(frozen=True, eq=False)
class RobotView:
    """The shape of a robot at a pose, in metres in the base frame."""

    title: str
    links: Array  #: Joint and parent of every body, shape (bodies, 2, 3).
    bodies: Sequence[Mapping[str, Any]]  #: Ellipsoids: name, mass, centre and semi-axes (rows).
    impossible: Sequence[Mapping[str, Any]]  #: The same where there is none: imaginary axes are 0.


@dataclass(frozen=True, eq=False)
class PlacedMass:
    """A rigid body and where its frame is, in the base frame."""

    name: str
    mass: float  #: [kg]
    com: Array  #: Centre of mass in the body's frame [m].
    inertia: Array  #: About the centre of mass, in the axes of the body's frame [kg m^2].
    rotation: Array  #: Pose of the body's frame in the base frame.
    position: Array  #: See `rotation`.
    color: int  #: Number of its colour, the same in all views of a page.


def compared_robots(fit: FittedModel) -> dict[str, Robot]:
    """The description, the fit and least squares; of its parameters those closest to the fit."""
    away = fit.base_table["ols"].to_numpy() - fit.beta
    known = {e.columns for e in equalities(fit.robot)}  # zeros of bodies without mass
    free = [(j,) not in known for j in range(fit.robot.size)]
    K = np.asarray(fit.base.K, float) * free
    least = fit.delta + np.linalg.lstsq(K, away, rcond=None)[0] * free
    robots = {"described": fit.description, "fitted": fit.robot}
    return robots | {"least squares": fit.robot.with_values(least)}


def robot_views(fit: FittedModel, pose: Mapping[str, float] | None = None) -> list[RobotView]:
    """The robots of `compared_robots` in space."""
    views = []
    for title, robot in compared_robots(fit).items():
        frames, masses = robot.pose(pose), []
        links = np.zeros((len(robot.bodies), 2, 3))
        for k, body in enumerate(robot.bodies):
            turn, position = frames[body.name]
            links[k] = position, np.zeros(3) if body.parent is None else frames[body.parent][1]
            ten = robot.values[robot.inertial_columns[k]]
            if np.isfinite(ten).all() and ten.any():
                # A body without mass has no centre: its first moment stands in for one.
                numbers = to_mass_com_inertia(ten) if ten[9] else (0.0, ten[6:9], np.eye(3))
                mass, com, tensor = numbers
                masses.append(PlacedMass(body.name, float(mass), com, tensor, turn, position, k))
        views.append(view_of_masses(title, links, masses))
    return views


def view_of_masses(title: str, links: Array, masses: Sequence[PlacedMass]) -> RobotView:
    """The ellipsoids of bodies, and lines between the ends of `links`, shape (n, 2, 3)."""
    bodies, impossible = [], []
    for body in masses:
        squares, vectors = semi_axes(body.mass, body.inertia)
        shape: dict[str, Any] = {
            "name": body.name,
            "mass": body.mass,
            "centre": body.position + body.rotation @ body.com,
            "axes": (body.rotation @ vectors * np.sqrt(np.maximum(squares, 0))).T,
            "color": body.color,
        }
        if body.mass > 0 and squares[0] >= 0:
            bodies.append(shape)
        else:
            size = f"semi-axis squared {squares[0]:.2g} m\u00b2"
            why = f"mass {body.mass:.3g} kg" if body.mass <= 0 else size
            impossible.append({**shape, "joint": body.position, "why": why})
    return RobotView(title, links, bodies, impossible)


def semi_axes(mass: float, inertia: Array) -> tuple[Array, Array]:
    """Squares of the semi-axes [m^2], smallest first, and their directions as columns.

    The second moments of an ellipsoid of constant density are ``m a^2 / 5``. Where a square is
    negative or the mass is not positive, no body has this inertia; all are zero for such a mass.
    """
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(second)
    return (5 * values / mass if mass > 0 else np.zeros(3)), vectors


def robot_drawings(views: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each robot as shapes of an SVG, seen from `AZIMUTH` and `ELEVATION`.

    A shape has coordinates in space, in units of the picture, which the page's script rotates, and
    coordinates of its projection: the outline of an ellipsoid is an ellipse.
    """
    # A ball holds the robots, those with impossible bodies aside. Bodies of least squares may be as
    # large as a house, as placeholders in files may: they do not count.
    shown = [view for view in views if not view["impossible"]] or views
    points = [np.reshape(view["links"], (-1, 3)) for view in shown]
    solids = [(body["centre"], np.asarray(body["axes"])) for v in shown for body in v["bodies"]]
    sizes = [float(np.linalg.norm(axes, axis=1).max()) for _, axes in solids]
    for (place, axes), size in zip(solids, sizes, strict=True):
        if size <= LARGE * np.median(sizes):
            points += [place + axes, place - axes]
    every = np.concatenate(points)
    centre = (every.min(axis=0) + every.max(axis=0)) / 2
    scale = 0.95 * HALF_WIDTH / max(float(np.linalg.norm(every - centre, axis=1).max()), 1e-3)
    s, c, t, d = np.sin(AZIMUTH), np.cos(AZIMUTH), np.sin(ELEVATION), np.cos(ELEVATION)
    # Rows: right and down on paper, and towards the reader.
    camera = np.array([[-s, c, 0], [t * c, t * s, -d], [d * c, d * s, t]])
    for view in views:
        shapes: list[dict[str, Any]] = []
        for ends in view["links"]:
            (a, b) = scale * (np.asarray(ends, float) - centre)
            shapes.append({"kind": "link", "space": [*a, *b], "paper": [*(camera @ a)[:2],
                           *(camera @ b)[:2]], "depth": (camera @ (a + b))[2] / 2})  # fmt: skip
        bodies = [("body", body) for body in view["bodies"]]
        for kind, body in bodies + [("impossible", body) for body in view["impossible"]]:
            place = scale * (np.asarray(body["centre"], float) - centre)
            axes = scale * np.asarray(body["axes"], float)
            x, y, depth = camera @ place
            if kind == "body" and np.linalg.norm(axes, axis=1).max() > HALF_WIDTH:
                kind = "outline"  # filled it would hide all others
            # On paper an ellipse: its semi-axes, and the angle of the first [degrees].
            flat = axes @ camera[:2].T
            values, vectors = np.linalg.eigh(flat.T @ flat)
            angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
            paper = [x, y, *map(float, np.sqrt(np.maximum(values[::-1], 0))), angle]
            shapes.append({"kind": kind, "space": [*place, *axes.ravel()], "depth": depth,
                           "paper": paper, "body": body})  # fmt: skip
        for body in view["impossible"]:
            place = scale * (np.asarray(body["joint"], float) - centre)
            shapes.append({"kind": "name", "space": place, "paper": (camera @ place)[:2],
                           "depth": np.inf, "body": body})  # fmt: skip
        yield {**view, "shapes": sorted(shapes, key=lambda shape: float(shape["depth"]))}


def compare_models(fit: FittedModel) -> pd.DataFrame:
    """Torque error, impossible bodies and MuJoCo's answer of description, least squares and fit.

    Errors are those on parts of the log that a model was not fitted to. MuJoCo is asked where it
    is installed.
    """
    import pandas as pd

    errors, views = fit.evidence.errors, robot_views(fit)
    relative = [errors.description, errors.model, errors.least_squares]
    models = pd.DataFrame(
        {
            "torque error": [errors.overall_error(error) for error in relative],
            "impossible bodies": [f"{len(v.impossible)} of {len(v.links)}" for v in views],
        },
        index=["description", "feasid", "least squares"],
    )
    if find_spec("mujoco"):
        models["MuJoCo"] = [*map(_ask_mujoco, compared_robots(fit).values())]
    return models.loc[["description", "least squares", "feasid"]]


def _ask_mujoco(robot: Robot) -> str:
    """Whether MuJoCo's compiler accepts bodies with these inertials, each on its own joint."""
    import mujoco  # type: ignore[import-untyped]

    bodies = []
    for columns in robot.inertial_columns:
        mass, com, inertia = to_mass_com_inertia(robot.values[columns])
        # MuJoCo lists the diagonal first.
        six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        place, tensor = (" ".join(map(str, x)) for x in (com, six))
        inertial = f"<inertial mass='{mass}' pos='{place}' fullinertia='{tensor}'/>"
        bodies.append(f"<body><joint/>{inertial}</body>")
    try:
        mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")
    except ValueError:
        return "refuses it"
    return "loads it"
