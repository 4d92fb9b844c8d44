"""What a force-torque sensor shows of the links that it carries.

    pip install feasid
    python examples/force_sensor.py arm.urdf [BODY]

A sensor is a joint of six degrees of freedom that does not move. In the base, a wrist or an ankle
it shows the wrench that what it carries needs: the torque of a joint that stays where it is. With
one put there, the regressor has six rows for it (moment about the sensor's origin, then force, in
its own axes), a log has zeros for its motion, and ``base_parameters(robot, held=sensor)`` gives
what it shows. Without BODY the whole robot stands on it, as on a force plate.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import numpy.typing as npt

import feasid
from feasid.core.errors import InputError
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.known import body_index


def with_force_sensor(
    robot: Robot,
    carries: str | None = None,
    *,
    rotation: npt.ArrayLike = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1)),
    position: npt.ArrayLike = (0.0, 0.0, 0.0),
    name: str = "force_sensor",
) -> Robot:
    """The robot with a force-torque sensor.

    `carries`: the body whose joint sits on the sensor, with all beyond it; default the whole robot,
    as on a force plate; `rotation` (3, 3), `position` (3,): pose of the sensor in the frame of the
    body it is fixed to, or of the base [m]; `name`: of the sensor's plate, a body with parameters
    of its own, and of its joint. Raises InputError: no such body, or the name is taken.
    """
    if carries is not None:
        body_index(robot, carries)  # raises where there is none
    if name in {*robot.joints, *(b.name for b in robot.bodies)}:
        raise InputError(f"robot {robot.name!r} has a body or joint {name!r} already")
    carried = [b for b in robot.bodies if b.name == carries or (carries is None and not b.parent)]
    turn, place = np.asarray(rotation, dtype=np.float64), np.asarray(position, dtype=np.float64)
    plate = Body(name, carried[0].parent, turn, place, np.eye(6))
    bodies: list[Body] = []
    for body in robot.bodies:
        if body is carried[0]:
            bodies.append(plate)
        if any(body is b for b in carried):
            rotor, position = body.rotor, turn.T @ (body.position - place)
            if rotor is not None:
                spot = turn.T @ (rotor.position - place)
                rotor = replace(rotor, rotation=turn.T @ rotor.rotation, position=spot)
            turned = turn.T @ body.rotation
            body = replace(body, parent=name, rotation=turned, position=position, rotor=rotor)
        bodies.append(body)
    return replace(robot, bodies=tuple(bodies))


if __name__ == "__main__":
    described = feasid.load_robot(sys.argv[1])
    sensed = with_force_sensor(described, *sys.argv[2:3])
    base = feasid.base_parameters(sensed, held="force_sensor", measured="force_sensor")
    print(f"the sensor shows {len(base.independent)} combinations of {described.size} parameters")
    for name, status in zip(sensed.parameter_names, base.status, strict=True):
        print(f"{'.'.join(name):30} {status}")
