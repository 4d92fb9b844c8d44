"""Generated code computes what the library computes, in Python and in C, and counts its work."""

import shutil
import subprocess
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from arms import panda, ur5
from logs import arm_parameters
from pinned import assert_pinned, without_digits
from robots import random_robot, random_rotation, read_arm

import feasid
from feasid.datasets import wam
from feasid.results.codegen.c import CCode
from feasid.results.codegen.expression import Graph, count_operations
from feasid.results.codegen.routine import ROUTINES, BaseParameterModel, python_function
from feasid.robot.dynamics.regressor import mass_matrix
from feasid.robot.inertia import from_mass_com_inertia
from feasid.robot.joint_terms import FRICTION

SAMPLES = 6
ROUNDING = 1e-12
"""Of the largest entry: a few hundred operations, and base parameters of mixed sizes."""

EXPONENTIAL = 1e-11
"""The same where turns are series of exponential coordinates on one side, quotients on the other:
the library's ``(1 - cos x) / x^2`` keeps fewer digits near its series' end."""


@cache
def arm(name):
    """Robots with values for all parameters."""
    if name == "wam":
        robot = wam.robot()
        return robot.with_values(np.random.default_rng(3).standard_normal(robot.size))
    return {"panda": panda, "ur5": ur5}[name]()


def motions(robot, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (3, SAMPLES, robot.dof))


def outputs(model, kind, motion):
    """A routine at every sample, and its parameters when they are an argument."""
    routine = model.routine(kind)
    function = python_function(routine)
    rows = []
    for k in range(motion.shape[1]):
        given = dict(zip(("q", "dq", "ddq"), (x[k].tolist() for x in motion), strict=True))
        given["beta"] = model.base.values(model.robot.values).tolist()
        rows.append(function(*(given[name] for name, _ in routine.inputs)))
    return np.array(rows)


def expected(robot, base, kind, motion):
    """The same by the library's batched functions."""
    q, dq, ddq = motion
    nothing = np.zeros_like(q)
    if kind == "inverse_dynamics":
        return feasid.inverse_dynamics(robot, q, dq, ddq)
    if kind == "gravity":
        return feasid.inverse_dynamics(robot, q, nothing, nothing, parameters=rigid(robot))
    if kind == "friction":
        parameters = robot.values - rigid(robot)
        parameters[[robot.drive_columns(k).get("Ia", 0) for k in range(len(robot.drives))]] = 0.0
        return feasid.inverse_dynamics(robot, q, dq, ddq, parameters=parameters)
    if kind == "regressor":
        Y = feasid.regressor(robot, q, dq, ddq, columns=base.independent)
        return Y.reshape(len(q), -1)
    return mass_matrix(robot, robot.values, q).reshape(len(q), -1)


def rigid(robot):
    """Parameters without those of the joint terms."""
    out = robot.values.copy()
    for k in range(len(robot.drives)):
        out[list(robot.drive_columns(k).values())] = 0.0
    return out


def equals_library(model, kind, seed=0, rounding=ROUNDING):
    """Whether a routine of a model computes what the library does, at random motions."""
    motion = motions(model.robot, seed)
    found, wanted = outputs(model, kind, motion), expected(model.robot, model.base, kind, motion)
    return np.abs(found - wanted).max() <= rounding * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("argument", [False, True])
@pytest.mark.parametrize("kind", ROUTINES)
@pytest.mark.parametrize("name", ["wam", "panda", "ur5"])
def test_code_equals_the_library(name, kind, argument):
    assert equals_library(BaseParameterModel.from_robot(arm(name), argument=argument), kind)


def test_geometry_taken_literally():
    robot = ur5()
    model = BaseParameterModel.from_robot(robot, feasid.base_parameters(robot, snap=None))
    assert equals_library(replace(model, robot=robot), "inverse_dynamics")


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["inverse_dynamics", "mass_matrix", "regressor", "gravity"])
def test_random_trees(seed, kind):
    """Slanted axes, prismatic and helical joints, rotors, branches."""
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "helical")
    robot = random_robot(rng, int(rng.integers(2, 6)), kinds, rotors=True)
    robot = robot.with_values(rng.uniform(-1, 1, robot.size))
    assert equals_library(BaseParameterModel.from_robot(robot), kind, seed)


@pytest.mark.parametrize(("precision", "argument"), [("double", False), ("float", True)])
def test_texts_and_numbers_are_what_they_were(precision, argument, tmp_path):
    bare = read_arm(tmp_path)
    robot = bare.with_values(arm_parameters(bare.with_joint_terms())[: bare.size])
    robot = robot.with_joint_terms([*FRICTION], drive_inertia=True)
    robot = robot.with_values(np.where(np.isnan(robot.values), 0.7, robot.values))
    code = CCode(BaseParameterModel.from_robot(robot, argument=argument), "arm", precision)
    lines = [*code.text.split("\n"), *code.header.split("\n")]
    counts = {r.name: r.operations for r in code.routines}
    results = {"lines": list(map(without_digits, lines)), "operations": counts}
    assert_pinned(f"code-{precision}", results | {"vector": code.test_vector})


@pytest.mark.parametrize("kind", ROUTINES)
def test_all_joint_terms(kind):
    robot = feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0), (-1.2, 0.3, 0, 0)])
    rng = np.random.default_rng(1)
    robot = robot.with_values(rng.uniform(0.5, 1.5, robot.size))
    robot = robot.with_joint_terms([*FRICTION], drive_inertia=True).with_transition(0.3)
    robot = robot.with_values(np.where(np.isnan(robot.values), 0.7, robot.values))
    assert equals_library(BaseParameterModel.from_robot(robot), kind)


@pytest.mark.parametrize("kind", ROUTINES)
def test_joints_that_follow_others(kind):
    robot = feasid.Robot.from_dh([(0, 0.4, 0, 0), (0.5, 0.3, 0, 0), (0, 0.2, 0.1, 0)])
    robot = robot.with_values(np.random.default_rng(2).uniform(0.5, 1.5, robot.size))
    follower = feasid.Coupling(robot.joints[2], {robot.joints[1]: -0.5}, 0.2)
    robot = feasid.Robot(robot.bodies, couplings=(follower,))
    assert equals_library(BaseParameterModel.from_robot(robot), kind)


def wide_tree(seed):
    """A floating trunk with joints of one to three arbitrary axes, and a branch."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k, (parent, axes) in enumerate([(None, 6), ("b0", 3), ("b0", 2), ("b1", 1), ("b2", 3)]):
        ten = from_mass_com_inertia(rng.uniform(1, 2), rng.uniform(-0.3, 0.3, 3), np.eye(3))
        place = random_rotation(rng), rng.standard_normal(3)
        motion = rng.standard_normal((6, axes))
        bodies.append(feasid.Body(f"b{k}", parent, *place, motion=motion, inertial=ten))
    return feasid.Robot(bodies, gravity=(1, 2, -9))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ROUTINES)
def test_joints_of_any_axes_equal_the_library(kind, seed):
    model = BaseParameterModel.from_robot(wide_tree(seed))
    assert equals_library(model, kind, seed, EXPONENTIAL)


# -- C ---------------------------------------------------------------------------------------

MAIN = """#include "arm.h"
#include <stdio.h>
int main(void) { printf("%.17g\\n", (double)arm_self_test()); return 0; }
"""
CHECKS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1",
          "-fsanitize=address,undefined")  # fmt: skip

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def deviation(folder):
    """Compile strictly, run under sanitizers, return what the self-test says."""
    (folder / "main.c").write_text(MAIN)
    command = ["cc", *CHECKS, "arm.c", "main.c", "-o", "arm", "-lm"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./arm"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@needs_compiler
@pytest.mark.parametrize(("name", "precision", "parameters"), [
    ("ur5", "double", "values"), ("ur5", "float", "argument"),
    pytest.param("wam", "double", "argument", marks=pytest.mark.slow),
    pytest.param("wam", "double", "values", marks=pytest.mark.slow),
    pytest.param("panda", "double", "values", marks=pytest.mark.slow),
    pytest.param("panda", "float", "values", marks=pytest.mark.slow),
])  # fmt: skip
def test_c_is_clean_and_equal(tmp_path, name, precision, parameters):
    feasid.export_c(arm(name), tmp_path / "arm.c", precision=precision, parameters=parameters)
    limit = {"double": ROUNDING, "float": 1e-5}[precision]  # eps 6e-8, some hundred operations
    assert deviation(tmp_path) <= limit


@needs_compiler
@pytest.mark.parametrize(("precision", "limit"), [("double", ROUNDING), ("float", 1e-5)])
def test_c_of_a_floating_base_is_clean_and_equal(tmp_path, precision, limit):
    robot, names = feasid.Robot(wide_tree(0).bodies[:2]), [*ROUTINES, "forward_dynamics"]
    feasid.export_c(robot, tmp_path / "arm.c", precision=precision, routines=names)
    assert deviation(tmp_path) <= limit


@needs_compiler
def test_the_self_test_can_fail(tmp_path):
    code = feasid.export_c(arm("ur5"), tmp_path / "arm.c", routines=["gravity"])
    value = repr(float(code.test_vector["gravity"][1]))
    (tmp_path / "arm.c").write_text(code.text.replace(value, "12.5"))
    assert deviation(tmp_path) > 0.1


SYMPYBOTICS = 490
"""Multiplications of SymPyBotics' inverse dynamics of the WAM with the same base parameters."""


def test_operations_of_the_wam():
    """Parameters as arguments."""
    model = BaseParameterModel.from_robot(wam.robot().with_joint_terms(()), argument=True)
    counts = {kind: model.routine(kind).operations for kind in ROUTINES}
    assert counts["inverse_dynamics"].multiplications <= 316 < SYMPYBOTICS
    assert counts["gravity"].multiplications <= 64
    assert counts["mass_matrix"].multiplications <= 188
    assert counts["regressor"].multiplications <= 696


# -- expressions -----------------------------------------------------------------------------


def test_the_same_expression_is_made_once():
    graph = Graph()
    a, b = graph.inputs("x", 2)
    assert a * b is b * a
    assert (-a) * b is -(a * b)
    assert a + b is b + a
    assert a - a is graph.as_expression(0.0)
    assert -(a - b) is b - a
    assert graph.apply_function("cos", -a) is graph.apply_function("cos", a)
    assert 2.0 * (3.0 * a) is 6.0 * a
    assert count_operations([a * b + a * b]).multiplications == 1


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "half"}, "precision must be 'double' or 'float'"),
        ({"parameters": "both"}, "'values' or 'argument'"),
        ({"routines": ["gravitation"]}, "no routine 'gravitation'"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    with pytest.raises(feasid.FeasidError, match=message):
        feasid.export_c(ur5(), tmp_path / "arm.c", **options)
    assert not list(tmp_path.iterdir())


def test_what_has_no_code_is_refused(tmp_path):
    with pytest.raises(feasid.FeasidError, match=r"ends in \.c"):
        feasid.export_c(ur5(), tmp_path / "arm.cpp")
    with pytest.raises(feasid.FeasidError, match="gives no value for"):
        feasid.export_c(wam.robot(), tmp_path / "arm.c")
    (tmp_path / "arm.h").write_text("mine")
    with pytest.raises(feasid.FeasidError, match="exists"):
        feasid.export_c(ur5(), tmp_path / "arm.c")
    assert (tmp_path / "arm.h").read_text() == "mine"
