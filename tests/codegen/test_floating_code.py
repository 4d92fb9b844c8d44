"""Code of robots whose base floats or has ball joints gives what Pinocchio and MuJoCo give."""

import ctypes
import math
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from floating import loaded
from pinocchio_side import PinocchioModel
from robots import MODELS

import feasid
from feasid.results.codegen.c import find_compiler
from feasid.results.codegen.expression import FUNCTIONS, SERIES_BELOW
from feasid.robot.inertia import from_mass_com_inertia

SAME = 1e-12
"""Relative to the largest: rounding of a few hundred operations."""

compiled = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
BACKENDS = ["python", pytest.param("c", marks=compiled)]


def with_friction(robot):
    """Viscous, Coulomb and offset friction and drive inertia at joints, as numbers."""
    robot = robot.with_joint_terms(drive_inertia=True)
    values = np.nan_to_num(robot.values)
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            values[column] = {"fv": 0.3, "fc": 0.2, "fo": -0.1, "Ia": 0.05}[symbol]
    return robot.with_values(values)


@pytest.mark.parametrize(("name", "backend"), [
    ("bolt", "python"), ("solo12", "python"), ("z1", "python"),
    pytest.param("bolt", "c", marks=compiled),
    pytest.param("solo12", "c", marks=[compiled, pytest.mark.slow]),
    pytest.param("z1", "c", marks=[compiled, pytest.mark.slow]),
])  # fmt: skip
@pytest.mark.sampled(0.34)
def test_floating_models_are_pinocchios(name, backend):
    """A biped, a quadruped and an arm, in tilted gravity, with and without friction."""
    robot, path = loaded(name)
    robot = robot.with_gravity((1.0, 2.0, -9.0))
    theirs = PinocchioModel(robot, path)
    own, rubbing = (
        feasid.CompiledDynamics(r, backend=backend) for r in (robot, with_friction(robot))
    )
    base, free = own.base.values(robot.values), np.arange(robot.dof) >= 6
    for q, dq, ddq in np.random.default_rng(0).uniform(-1, 1, (3, 3, robot.dof)):
        tau, M = theirs.torques(q, dq, ddq), theirs.mass_matrix(q)
        amplified = SAME * np.linalg.cond(M)
        rub = (0.3 * dq + 0.2 * np.sign(dq) - 0.1) * free
        for ours, wanted in (
            (own.inverse_dynamics(q, dq, ddq), tau),
            (own.gravity(q), theirs.torques(q, 0 * q, 0 * q)),
            (own.mass_matrix(q), M),
            (own.regressor(q, dq, ddq) @ base, tau),
            (rubbing.inverse_dynamics(q, dq, ddq), tau + rub + 0.05 * ddq * free),
            (rubbing.friction(q, dq), rub),
        ):
            assert np.abs(ours - wanted).max() < SAME * np.abs(wanted).max()
        for model, push in ((own, tau), (rubbing, tau + rub + 0.05 * ddq * free)):
            assert np.abs(model.forward_dynamics(q, dq, push) - ddq).max() < amplified
        aba = theirs.accelerations(q, dq, tau)
        assert np.abs(own.forward_dynamics(q, dq, tau) - aba).max() < amplified


JOINTS = MODELS / "joints.xml"
"""A free base, a ball joint, a slide and a hinge with damping."""


@pytest.mark.parametrize("backend", BACKENDS)
def test_balls_and_floating_bases_are_mujocos(tmp_path, backend):
    mujoco = pytest.importorskip("mujoco")
    from mujoco_side import inverse

    robot = feasid.load_robot(JOINTS)
    assert [b.dof for b in robot.bodies] == [6, 3, 1, 1]
    model = mujoco.MjModel.from_xml_path(str(JOINTS))
    own = feasid.CompiledDynamics(robot, backend=backend)
    for q, dq, ddq in np.random.default_rng(1).uniform(-1, 1, (5, 3, robot.dof)):
        tau = inverse(model, robot, q, dq, ddq)
        assert np.abs(own.inverse_dynamics(q, dq, ddq) - tau).max() < SAME * np.abs(tau).max()
        amplified = SAME * np.linalg.cond(own.mass_matrix(q))
        assert np.abs(own.forward_dynamics(q, dq, tau) - ddq).max() < amplified


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 0.3, 0.32, 3.0, 6.3])
def test_turns_of_any_size(angle):
    """Against Pinocchio's rotations, on both sides of where a series ends, and at none."""
    pin = pytest.importorskip("pinocchio")
    ten = from_mass_com_inertia(1.0, np.array([0.3, -0.2, 0.1]), 0.1 * np.eye(3))
    robot = feasid.Robot([feasid.Body("ball", None, motion=np.eye(6)[:, :3], inertial=ten)])
    w = angle * np.array([0.6, -0.48, 0.64])
    weight = np.cross([0.3, -0.2, 0.1], pin.exp3(w).T @ [0, 0, 9.81])
    assert np.abs(feasid.CompiledDynamics(robot, backend="python").gravity(w) - weight).max() < SAME


@pytest.mark.parametrize("square", [1e-6, 0.01, 0.0999, 0.1001, 2.0])
def test_the_remainder_of_a_sine_is_its_series(square):
    exact = sum((-Fraction(square)) ** k / math.factorial(2 * k + 3) for k in range(20))
    digits = 3e-15 if square < SERIES_BELOW else 2e-14  # sin(x) / x is subtracted from 1
    assert FUNCTIONS["sinc_rest"](square) == pytest.approx(float(exact), rel=digits, abs=0)


def test_parameters_that_are_numbers_in_the_code_are_not_changed():
    robot = feasid.datasets.load("arm").attrs["robot"]
    with pytest.raises(feasid.FeasidError, match="base="):
        feasid.CompiledDynamics(robot, backend="python").use([1.0])


# -- written C -------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_compiler
def test_c_of_a_floating_base_is_pinocchios(tmp_path):
    robot, path = loaded("solo12")
    names = ["inverse_dynamics", "gravity", "mass_matrix", "forward_dynamics"]
    code = feasid.export_c(robot, tmp_path / "dog.c", routines=names)
    assert "[3] floating_base_4  m, N" in code.header
    flags = "-std=c99 -pedantic -Wall -Wextra -Werror -O1 -fPIC -shared"
    built = ["cc", *flags.split(), "dog.c", "-o", "dog.so", "-lm"]
    subprocess.run(built, cwd=tmp_path, check=True)
    library, theirs = ctypes.CDLL(str(tmp_path / "dog.so")), PinocchioModel(robot, path)

    def call(name, size, *inputs):
        out = np.empty(size)
        arrays = [np.ascontiguousarray(x) for x in (*inputs, out)]
        getattr(library, f"dog_{name}")(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
        return arrays[-1]

    n = robot.dof
    for q, dq, ddq in np.random.default_rng(2).uniform(-1, 1, (3, 3, n)):
        tau, M = theirs.torques(q, dq, ddq), theirs.mass_matrix(q)
        still = theirs.torques(q, 0 * q, 0 * q)
        for found, wanted in (
            (call("inverse_dynamics", n, q, dq, ddq), tau),
            (call("gravity", n, q), still),
            (call("mass_matrix", n * n, q).reshape(n, n), M),
        ):
            assert np.abs(found - wanted).max() < SAME * np.abs(wanted).max()
        push = call("forward_dynamics", n, q, dq, tau)
        assert np.abs(push - ddq).max() < SAME * np.linalg.cond(M)


def test_a_mass_matrix_that_is_singular_is_said():
    body = feasid.Body("point", None, inertial=np.zeros(10))
    model = feasid.CompiledDynamics(feasid.Robot([body]), backend="python")
    with pytest.raises(feasid.FeasidError, match="singular"):
        model.forward_dynamics([0.1], [0.2], [1.0])
