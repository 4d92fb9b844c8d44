"""Force-torque sensors as joints of six degrees of freedom that do not move.

A sensor in the base, a wrist or an ankle shows the wrench that what it carries needs. That is the
torque of a joint that stays where it is: with one put there, the regressor has six rows for it
(moment about the sensor's origin, then force, in its own axes), a log has zeros for its motion, and
``base_parameters(robot, held=sensor)`` gives what it shows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.errors import InputError, did_you_mean
from feasid.robot.bodies import Body
from feasid.robot.description import Robot


def with_force_sensor(
    robot: Robot,
    carries: str | None = None,
    *,
    rotation: npt.ArrayLike = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1)),
    position: npt.ArrayLike = (0.0, 0.0, 0.0),
    name: str = "force_sensor",
) -> Robot:
    """The robot with a force-torque sensor.

    Parameters
    ----------
    robot : Robot
    carries : str, optional
        The body whose joint sits on the sensor, with all beyond it; default the whole robot, as
        on a force plate.
    rotation, position : array_like, shapes (3, 3) and (3,)
        Pose of the sensor in the frame of the body it is fixed to, or of the base [m].
    name : str
        Of the sensor's plate, a body with parameters of its own, and of its joint.

    Raises
    ------
    InputError
        No such body, or the name is taken.
    """
    names = [b.name for b in robot.bodies]
    if carries is not None and carries not in names:
        raise InputError(
            f"robot {robot.name!r} has no body {carries!r}{did_you_mean(carries, names)}"
        )
    if name in names or name in robot.joints:
        raise InputError(f"robot {robot.name!r} has a body or joint {name!r} already")
    chosen = [b for b in robot.bodies if b.name == carries or (carries is None and not b.parent)]
    turn, place = np.asarray(rotation, dtype=np.float64), np.asarray(position, dtype=np.float64)
    plate = Body(name, chosen[0].parent, turn, place, np.eye(6))

    def move_body(body: Body) -> Body:
        rotor = body.rotor
        if rotor is not None:
            spot = turn.T @ (rotor.position - place)
            rotor = replace(rotor, rotation=turn.T @ rotor.rotation, position=spot)
        return replace(
            body,
            parent=name,
            rotation=turn.T @ body.rotation,
            position=turn.T @ (body.position - place),
            rotor=rotor,
        )

    bodies: list[Body] = []
    for body in robot.bodies:
        if body is chosen[0]:
            bodies.append(plate)
        bodies.append(move_body(body) if any(body is b for b in chosen) else body)
    return replace(robot, bodies=tuple(bodies))
