"""The regressor of real robots read from URDF, against Pinocchio reading the same files."""

import numpy as np
import pytest
from robots import RTOL, example_urdfs, relative

import feasid
from feasid.errors import FeasidError
from feasid.robot import inertia

pin = pytest.importorskip("pinocchio")

FEWEST = 10  # robots that must have been compared


def configuration(model, robot, q):
    """Our positions as Pinocchio's: continuous joints are (cos, sin) there."""
    out = pin.neutral(model)
    for name, value in zip(robot.joints, q, strict=True):
        joint = model.joints[model.getJointId(name)]
        out[joint.idx_q : joint.idx_q + joint.nq] = (
            value if joint.nq == 1 else (np.cos(value), np.sin(value))
        )
    return out


def compare(path):
    """Largest relative difference of regressors and of torques."""
    robot = feasid.load_robot(path).without_joint_terms()
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rng = np.random.default_rng(0)
    order = np.argsort(inertia.PINOCCHIO)
    ids = [model.getJointId(name) for name in robot.joints]
    rows = [model.joints[i].idx_v for i in ids]
    columns = np.concatenate([10 * (i - 1) + order for i in ids])
    samples = rng.standard_normal((3, 3, robot.dof))
    A, b = robot.coupling_map.A, robot.coupling_map.b  # joints that mimic others follow
    worst = 0.0
    for q, dq, ddq in zip(*samples, strict=True):
        theirs_q = configuration(model, robot, A @ q + b)
        theirs = [np.zeros(model.nv), np.zeros(model.nv)]
        for vector, ours in zip(theirs, (dq, ddq), strict=True):
            vector[rows] = A @ ours
        full = pin.computeJointTorqueRegressor(model, data, theirs_q, *theirs)
        ours = feasid.regressor(robot, q, dq, ddq)[0]
        worst = max(worst, relative(ours, A.T @ full[rows][:, columns]))
        torque = A.T @ pin.rnea(model, data, theirs_q, *theirs)[rows]
        worst = max(worst, relative(feasid.inverse_dynamics(robot, q, dq, ddq)[0], torque))
    return worst


@pytest.mark.slow
def test_equal_to_pinocchio_on_real_robots():
    compared = {}
    for path in example_urdfs():
        try:
            if feasid.load_robot(path).dof > 40:
                continue
            compared[path.stem] = compare(path)
        except FeasidError:
            continue  # refused by name, tested with the reader
        except (KeyError, IndexError):
            continue  # Pinocchio names or drops a joint otherwise
    assert len(compared) >= FEWEST
    assert max(compared.values()) < RTOL, compared
