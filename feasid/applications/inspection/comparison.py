"""Two models side by side: do they move alike, and which base parameters differ?

Joint torques depend on the parameters delta only through the base parameters ``beta = K delta``
(Sousa and Cortesao (2014) eq. (38)). So two models with the same kinematics are dynamically
equivalent exactly when their base parameters are equal, however differently they spread
mass over the links. Friction, drive inertia and springs that the files give joints count, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.formats.load import load_robot
from feasid.robot.formats.registry import FORMATS
from feasid.robot.formats.terms import sum_drives
from feasid.robot.joint_terms import DRIVE_SYMBOLS
from feasid.robot.layout import random_configurations
from feasid.robot.variants import with_axis_frames

TOLERANCE = 1e-9
"""Difference up to which numbers, axes and positions [m] count as equal by default, but for formats
of short numbers, see `Format.agreement`."""

TORQUE_TOLERANCE = 1e-6
"""Torque difference that equivalent models may show: rounded angles taken for exact ones."""

SAMPLES = 200  #: Random states at which torques are compared.


@dataclass(frozen=True)
class BaseRow:
    """One base parameter in both models; `relative` to the terms that it is the sum of."""

    expression: str
    a: float
    b: float
    relative: float


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """Differences between two models."""

    names: tuple[str, str]  #: Of the two models, for display.
    #: Differences of joints, axes and placements, each naming the joint; empty when equal.
    kinematics: tuple[str, ...]
    rows: tuple[BaseRow, ...]  #: Base parameters side by side; empty when the kinematics differ.
    #: Per joint the norm of the torque difference over that of the first model's torques, at random
    #: positions, velocities and accelerations; empty when the joints differ.
    torques: dict[str, float]
    #: Same kinematics and equal base parameters, joint terms included: the same joint torques for
    #: every motion.
    equivalent: bool
    tolerance: float  #: Relative difference of base parameters up to which they count as equal.

    @property
    def different(self) -> tuple[BaseRow, ...]:
        """Rows that differ by more than the tolerance."""
        return tuple(row for row in self.rows if row.relative > self.tolerance)

    def display(self) -> Display:
        """A short display of the comparison."""
        same, size = not self.kinematics, len(self.rows)
        measures = [Measure("joints", "same" if same else "differ", "same", same)]
        if self.rows:
            equal = size - len(self.different)
            text = f"{equal} of {size}"
            measures.append(Measure("equal base parameters", text, str(size), equal == size))
        if self.torques:
            worst = max(self.torques, key=lambda joint: self.torques[joint])
            value = f"{100 * self.torques[worst]:.3g} % at {worst}, the most"
            measures.append(Measure("torques differ by", value, "0", self.equivalent))
        verdict = "dynamically equivalent" if self.equivalent else "different"
        title = f"{verdict}: {self.names[0]} and {self.names[1]}"
        rows = (
            f"{r.expression}: {r.a:.6g} and {r.b:.6g}, {100 * r.relative:.2g} % apart"
            for r in self.different
        )
        more = "more: comparison.rows, comparison.torques, comparison.different"
        return Display(title, measures, [*self.kinematics, *rows], more=more)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        Returns
        -------
        dict
            "a", "b" (names), "equivalent", "tolerance", "kinematics", "torques" and
            "base_parameters".
        """
        numbers = {"torques": self.torques, "base_parameters": [vars(row) for row in self.rows]}
        verdict = {"equivalent": self.equivalent, "tolerance": self.tolerance}
        names = {"a": self.names[0], "b": self.names[1]}
        return {**names, **verdict, "kinematics": list(self.kinematics), **numbers}


@checked
def compare(
    a: Robot | str | os.PathLike[str],
    b: Robot | str | os.PathLike[str],
    tolerance: float = TOLERANCE,
    model: str | tuple[str, str] = "",
) -> Comparison:
    """Compare two models: do they move alike, and which base parameters differ?

    Parameters
    ----------
    a, b : Robot or path
        Two robots, or two description files. A file that does not say whether its root floats is
        read as the other one says.
    tolerance : float
        Relative difference of base parameters up to which they count as equal; at least 3e-6 where
        one comes from USD, whose numbers have 32 bits.
    model : str, or two
        Which of several models of SDF and USD files, in both or in each.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        One argument is a robot and the other a file, or the tolerance is not between 0 and 1.
    """
    if isinstance(a, Robot) and isinstance(b, Robot):
        return compare_robots(a, b, tolerance)
    if isinstance(a, Robot) or isinstance(b, Robot):
        raise InputError("compare takes two robots or two files, not one of each")
    paths = [os.fspath(a), os.fspath(b)]
    models = [model] * 2 if isinstance(model, str) else [*model]
    several = {x for form in FORMATS.values() if form.several for x in form.suffixes}
    there = [Path(path).suffix.lower() in several for path in paths]
    if isinstance(model, str) and any(there):  # of those that may have it
        models = [model * x for x in there]
    robots = [load_robot(path, model=x) for path, x in zip(paths, models, strict=True)]
    floating = [any(body.floats for body in robot.bodies) for robot in robots]
    if floating[0] != floating[1]:
        k = floating.index(False)
        with suppress(InputError):  # the file says that it stands
            robots[k] = load_robot(paths[k], floating=True, model=models[k])
            paths[k] += " (floating, as the other)"
    return replace(compare_robots(robots[0], robots[1], tolerance), names=(paths[0], paths[1]))


def compare_robots(a: Robot, b: Robot, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two robots, matched by joint names; parameters that are not given count as zero.

    Raises InputError: `tolerance` is not a positive number.
    """
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance} must lie between 0 and 1", tolerance=tolerance)
    forms = [FORMATS[r.source.format] for r in (a, b) if r.source and r.source.format in FORMATS]
    coarse = max([TOLERANCE, *(form.agreement for form in forms)])
    tolerance = max(tolerance, coarse) if coarse > TOLERANCE else tolerance
    names = a.name, b.name
    free = [[body.joint for body in r.bodies if body.floats] for r in (a, b)]
    if len(free[0]) == len(free[1]) == 1:  # its name is that of the format where a file has none
        named = (replace(x, joint=free[0][0]) if x.floats else x for x in b.bodies)
        b = replace(b, bodies=tuple(named))
    joints = tuple(_joint_differences(a, b))
    if joints:
        return Comparison(names, joints, (), {}, False, tolerance)
    # The second robot with the first one's body names and order.
    name = {body.name: a.bodies[a.joint_index(body.joint)].name for body in b.bodies}
    ends: dict[str | None, str | None] = {None: None}
    ends.update(name.items())
    order = [b.bodies[b.joint_index(joint)] for joint in a.joints]
    bodies = [replace(x, name=name[x.name], parent=ends[x.parent]) for x in order]
    loops = [replace(x, first=ends[x.first], second=ends[x.second]) for x in b.loops]
    a, b = _with_same_terms(a, replace(b, bodies=tuple(bodies), loops=tuple(loops)))
    first, second = ({c.joint: {**c.factors, "": c.offset} for c in r.couplings} for r in (a, b))
    ties = [
        f"joint {joint!r} follows other joints differently"
        for joint in dict.fromkeys((*first, *second))
        if (x := first.get(joint, {})).keys() != (y := second.get(joint, {})).keys()
        or any(abs(x[name] - y[name]) > coarse * max(1.0, abs(x[name])) for name in x)
    ]
    if not ties and sorted(a.constraint_texts) != sorted(b.constraint_texts):
        ties.append("the closed loops differ")
    if ties:
        return Comparison(names, tuple(ties), (), {}, False, tolerance)
    if next(_place_differences(a, b, coarse), None):  # URDF has frames on axes only
        a, b = with_axis_frames(a), with_axis_frames(b)
    places = tuple(_place_differences(a, b, coarse))
    values = tuple(np.where(np.isnan(r.values), 0.0, r.values) for r in (a, b))
    torques = _torque_differences(a, b, *values)
    if places:
        return Comparison(names, places, (), torques, False, tolerance)
    base = base_parameters(a)
    bulk = np.maximum(*np.abs(values))
    for columns in a.inertial_columns if coarse > TOLERANCE else ():
        # Principal axes are rounded, too: an entry is as exact as the largest of its body.
        bulk[columns] = np.where(np.arange(10) < 6, bulk[columns][:6].max(), bulk[columns])
    sizes = np.abs(base.K) @ bulk
    columns = zip(base.expressions, *map(base.values, values), sizes.tolist(), strict=True)
    rows = [
        BaseRow(expression, float(x), float(y), abs(float(x - y)) / size if size else 0.0)
        for expression, x, y, size in columns
    ]
    equal = all(row.relative <= tolerance for row in rows)
    equal &= max(torques.values()) <= max(tolerance, TORQUE_TOLERANCE)
    return Comparison(names, (), tuple(rows), torques, equal, tolerance)


def _joint_differences(a: Robot, b: Robot) -> Iterator[str]:
    """Joints that only one has, or that hang on others or have other degrees of freedom."""
    for one, counterpart, which in ((a, b, "second"), (b, a, "first")):
        for joint in one.joints:
            if joint not in counterpart.joints:
                yield f"joint {joint!r} is missing in the {which} model"
    joints = [{None: None} | {body.name: body.joint for body in r.bodies} for r in (a, b)]
    parents = [
        {body.joint: above.get(body.parent) for body in r.bodies if body.joint in a.joints}
        for r, above in zip((a, b), joints, strict=True)
    ]
    for body in a.bodies:
        if body.joint not in b.joints:
            continue
        above = [p.get(body.joint) for p in parents]
        if above[0] != above[1]:
            text = " against ".join("the base" if p is None else f"joint {p!r}" for p in above)
            yield f"joint {body.joint!r} hangs on {text}"
        if body.dof != b.bodies[b.joint_index(body.joint)].dof:
            yield f"joint {body.joint!r} has other degrees of freedom"


def _with_same_terms(a: Robot, b: Robot) -> tuple[Robot, Robot]:
    """Both robots with the joint terms that either has; zero where the other is silent."""
    terms = sum_drives(a.drives), sum_drives(b.drives)
    names = {body.joint: body.name for body in a.bodies}
    drives: tuple[list[Drive], list[Drive]] = [], []
    for coupling in dict.fromkeys((*terms[0], *terms[1])):
        terms_of_both = [t.get(coupling, {}) for t in terms]
        symbols = tuple(s for s in DRIVE_SYMBOLS if any(s in g for g in terms_of_both))
        joints = [joint for joint, _ in coupling]
        name = names[joints[0]] if len(joints) == 1 else f"drive of {', '.join(joints)}"
        for out, values in zip(drives, terms_of_both, strict=True):
            numbers = np.array([values.get(s, 0.0) for s in symbols])
            out.append(Drive(name, dict(coupling), symbols, numbers))
    first, second = a.load_model, b.load_model
    return (
        replace(a, drives=tuple(drives[0]), load_model=second if first is None else first),
        replace(b, drives=tuple(drives[1]), load_model=first if second is None else second),
    )


def _place_differences(a: Robot, b: Robot, tolerance: float) -> Iterator[str]:
    for one, counterpart in zip(a.bodies, b.bodies, strict=True):
        shift = float(np.linalg.norm(one.position - counterpart.position))
        turn = float(np.linalg.norm(one.rotation - counterpart.rotation))
        motion = float(np.abs(one.motion - counterpart.motion).max())
        if shift > tolerance:
            yield f"joint {one.joint!r} is placed {shift:.3g} m apart"
        if turn > tolerance:
            # Rotations that differ by an angle have a difference of norm sqrt(8) sin(angle / 2).
            angle = 2 * np.arcsin(min(turn / np.sqrt(8), 1.0))
            yield f"joint {one.joint!r} has frames turned by {angle:.3g} rad"
        if motion > tolerance:
            yield f"joint {one.joint!r} has another axis"
    if np.abs(a.gravity - b.gravity).max() > tolerance:
        yield f"gravity is {a.gravity.tolist()} against {b.gravity.tolist()}"


def _torque_differences(a: Robot, b: Robot, first: Array, second: Array) -> dict[str, float]:
    rng = np.random.default_rng(0)
    dq, ddq = (rng.uniform(-np.pi, np.pi, (SAMPLES, a.dof)) for _ in range(2))
    q = random_configurations(a, rng, SAMPLES).T
    tau = inverse_dynamics(a, q, dq, ddq, parameters=first)
    off = inverse_dynamics(b, q, dq, ddq, parameters=second) - tau
    joints = [rows for _, rows in a.moving_bodies]
    sizes = np.array([[np.linalg.norm(x[:, rows]) for rows in joints] for x in (tau, off)])
    # A joint without torque is compared with what rounding leaves of the largest one.
    floor = max(1e-12 * float(sizes[0].max()), float(np.finfo(np.float64).tiny))
    relative = sizes[1] / np.maximum(sizes[0], floor)
    return dict(zip((b.joint for b, _ in a.moving_bodies), relative.tolist(), strict=True))
