"""A robot changed in form: frames on joint axes, a parallelogram.

In a parallelogram a motor at the shoulder drives the elbow: master arms and palletizers turn their
forearm by a crank on the shoulder's axis and a rod that is parallel to the upper arm. The crank
keeps parallel to the forearm, the rod to the upper arm, so that the angles follow from two: with q
of the shoulder and c of the crank, and axes that point alike (otherwise with -q), the elbow is at
``c - q`` and the rod's joint at ``q - c``. No loop has to be closed, and there is no other branch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked
from feasid.core.arrays import require_finite
from feasid.core.errors import InputError, UnsupportedJointError
from feasid.robot.bodies import Body, Member, place_member
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot
from feasid.robot.inertia import change_frame

SCREW_TOLERANCE = 1e-12  #: Relative size below which a joint's other motion is rounding.


def with_axis_frames(robot: Robot) -> Robot:
    """The robot with the frames of turning bodies moved onto their axes; q means the same.

    Axes of frames keep their directions; inertial parameters, rotors and the load model follow.
    A frame that is on its axis stays where it is.
    """
    shifts, bodies = {"": np.zeros(3)}, []
    for body in robot.bodies:
        shift = np.zeros(3)  # where the axis is nearest to the body's origin, in its frame [m]
        if body.dof == 1 and body.motion[:3].any():
            w, v = body.motion[:3, 0], body.motion[3:, 0]
            if abs(float(w @ v)) > SCREW_TOLERANCE * max(1.0, float(np.linalg.norm(v))):
                raise UnsupportedJointError(
                    f"joint {body.joint!r} is helical, which URDF does not have", joint=body.joint
                )
            shift = np.asarray(np.cross(w, v) / (w @ w))
        motion = body.motion.copy()
        if shift.any():
            motion[3:] += np.cross(motion[:3].T, shift).T
            motion[3:][np.abs(motion[3:]) < SCREW_TOLERANCE] = 0.0
        ten, rotor, of_parent = body.inertial, body.rotor, shifts[body.parent or ""]
        links = body.members or ((Member(body.name, inertial=ten),) if shift.any() else ())
        moved = replace(
            body,
            position=body.position + body.rotation @ shift - of_parent,
            motion=motion,
            inertial=None if ten is None else change_frame(np.eye(3), -shift) @ ten,
            rotor=None if rotor is None else replace(rotor, position=rotor.position - of_parent),
            members=tuple(place_member(m, np.eye(3), -shift) for m in links),
        )
        shifts[body.name] = shift
        bodies.append(moved)
    load = robot.load_model
    if load is not None:
        moves = [change_frame(np.eye(3), -shifts[b.name]) for b in robot.bodies]
        load = np.array([m @ row for m, row in zip(moves, load, strict=True)])
    return replace(robot, bodies=tuple(bodies), load_model=load, source=None)


PARALLEL = 1e-6  #: Largest sine of the angle between the axes of a shoulder and an elbow.


@checked
def parallelogram(
    robot: Robot,
    shoulder: str,
    elbow: str,
    reach: npt.ArrayLike,
    *,
    motor: str = "crank",
    crank: npt.ArrayLike | None = None,
    rod: npt.ArrayLike | None = None,
) -> Robot:
    """The robot with an elbow that a motor at the shoulder drives through a parallelogram.

    Parameters
    ----------
    robot : Robot
        Serial: the elbow's body hangs on the shoulder's.
    shoulder, elbow : str
        Joints with parallel axes.
    reach : array_like, shape (3,)
        From the elbow's axis to where the rod holds the forearm, in the forearm's frame [m]; the
        crank is as long.
    motor : str
        Name of the crank's joint, which takes the elbow's place among the independent ones: logs
        have ``q_<motor>`` and ``tau_<motor>``. It is zero, and turns the forearm in the world the
        same way, where shoulder and elbow are at zero.
    crank, rod : array_like, shape (10,), optional
        Inertial parameters of the bars ``Lxx Lxy Lxz Lyy Lyz Lzz lx ly lz m``, in the frames of
        the forearm (its origin on the shoulder's axis) and of the upper arm (its origin at the
        crank's end); default unknown, found by a fit.

    Returns
    -------
    Robot
        The robot with bodies ``<motor>`` and ``<motor>_rod``; it is no longer linked to its file.

    Raises
    ------
    InputError
        A joint does not exist, the elbow does not hang on the shoulder, the axes are not parallel,
        or the name is taken.
    """
    s, e = robot.joint_index(shoulder), robot.joint_index(elbow)
    upper, fore = robot.bodies[s], robot.bodies[e]
    way = require_finite(reach, (3,), "reach")
    if fore.parent != upper.name or upper.dof != 1 or fore.dof != 1:
        raise InputError(
            f"a parallelogram needs an elbow that hangs on the shoulder's body {upper.name!r}; "
            f"{elbow!r} hangs on {fore.parent!r}",
            joint=elbow,
        )
    doubled = {motor, f"{motor}_rod"} & {*robot.joints, *(b.name for b in robot.bodies)}
    if doubled:
        raise InputError(f"the name {min(doubled)!r} is taken: give another motor=", joint=motor)
    axes = upper.motion[:3, 0], fore.rotation @ fore.motion[:3, 0]
    pitch = sum(abs(float(b.motion[:3, 0] @ b.motion[3:, 0])) for b in (upper, fore))
    hinged = axes[0].any() and axes[1].any() and pitch <= PARALLEL
    if not hinged or np.linalg.norm(np.cross(*axes)) > PARALLEL * axes[0] @ axes[0]:
        raise InputError(
            f"{shoulder!r} and {elbow!r} are not hinges with parallel axes", joint=elbow
        )
    sign = float(np.sign(axes[0] @ axes[1]))
    bars = [None if x is None else require_finite(x, (10,), "a bar") for x in (crank, rod)]
    # The crank keeps parallel to the forearm, the rod to the upper arm: they turn as those do.
    turning = np.concatenate([fore.motion[:3], np.zeros((3, 1))])
    level = np.concatenate([upper.motion[:3], np.zeros((3, 1))])
    turn, slide = upper.motion[:3, 0], upper.motion[3:, 0]
    on_axis = upper.position + upper.rotation @ np.cross(turn, slide) / (turn @ turn)
    first = Body(
        motor, upper.parent, upper.rotation @ fore.rotation, on_axis, turning,
        joint=motor, inertial=bars[0],
    )  # fmt: skip
    second = Body(f"{motor}_rod", motor, fore.rotation.T, way, level, inertial=bars[1])
    follow = (
        Coupling(elbow, {motor: 1.0, shoulder: -sign}),
        Coupling(f"{motor}_rod", {shoulder: 1.0, motor: -sign}),
    )
    return replace(
        robot,
        bodies=(*robot.bodies, first, second),
        couplings=(*robot.couplings, *follow),
        source=None,
    )
