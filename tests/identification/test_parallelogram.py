"""A master arm: a parallelogram drives its forearm, springs and a counterweight balance it."""

import json
from functools import cache

import numpy as np
import pytest

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.robot.formats.sidecar import loop_table_path
from feasid.robot.inertia import change_frame

pytest.importorskip("mujoco")

from benchmarks.closed import STIFF, from_encoders, simulate

WORSE = 1.2  # times the truth's error on a log that was not fitted


def inertial(mass, x, size, z=0.005):
    return (
        f'<inertial pos="{x} 0.01 {z}" mass="{mass}" diaginertia="{size} {2 * size} {2.1 * size}"/>'
    )


SPRING = ' stiffness="6" springref="0.4"'
HANGING = '<joint name="turn" axis="0 0 1"/>' + inertial(2.0, 0.02, 0.01)
FOREARM = (
    '<body name="fore" pos="0 0 0.28"><joint name="elbow" axis="0 1 0"/>'
    + inertial(0.6, 0.15, 0.004)
    + "</body>"
)
BARS = (
    f'<body name="bar"><joint name="crank" axis="0 1 0"{SPRING}/>'
    + inertial(1.5, 0.06, 0.003)
    + '<body name="tie" pos="-0.1 0 0"><joint name="tie" axis="0 1 0"/>'
    + inertial(0.3, 0.01, 0.002, 0.14)
    + "</body></body>"
)
UPPER = f'<body name="upper"><joint name="shoulder" axis="0 1 0"/>{inertial(0.9, 0.02, 0.006, 0.1)}'


def arm(bars):
    """The whole mechanism, or its serial part as a file may describe it."""
    parts = f"{UPPER}{FOREARM}</body>{BARS if bars else ''}"
    hold = '<equality><connect body1="tie" body2="fore" anchor="0 0 0.28"/></equality>'
    motors = "".join(f'<motor joint="{j}"/>' for j in ("turn", "shoulder", "crank"))
    motors = f"<actuator>{motors}</actuator>"
    return (
        '<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="column" pos="0 0 0.3">'
        f"{HANGING}{parts}</body></worldbody>{hold + motors if bars else ''}</mujoco>"
    )


@cache
def truth():
    robot = feasid.load_robot(arm(True))
    return robot.with_loops(robot.loops, ("turn", "shoulder", "crank"), robot.configuration)


def test_the_bars_move_as_in_the_closed_loop():
    """Torques of the same inertial parameters, without a loop to close."""
    closed = truth().without_joint_terms()
    bars = {b.name: b.inertial for b in closed.bodies}
    serial = feasid.load_robot(arm(False))
    robot = feasid.parallelogram(
        serial, "shoulder", "elbow", (-0.1, 0, 0), motor="crank", crank=bars["bar"], rod=bars["tie"]
    ).without_joint_terms()
    assert robot.coordinates == closed.coordinates
    motion = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 40, 3))
    ours, theirs = (feasid.inverse_dynamics(r, *motion) for r in (robot, closed))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    assert feasid.base_parameters(robot).size == feasid.base_parameters(closed).size


@pytest.mark.slow
def test_an_arm_with_a_parallelogram_and_a_spring_is_identified():
    robot, text = truth(), arm(True)
    logs = (from_encoders(simulate(text, robot, k, 16.0, 0.35, bonds=STIFF)) for k in (0, 100))
    log, test = logs
    serial = feasid.load_robot(arm(False))
    described = feasid.parallelogram(serial, "shoulder", "elbow", (-0.1, 0, 0), motor="crank")
    fit = feasid.fit(log, described, candidates=("spring", "compensator"))
    springs = {d.name for d in fit.robot.drives if {"k", "gs"} & {*d.symbols}}
    assert "crank" in springs
    own = feasid.reduce(test, base=feasid.base_parameters(robot), **fit.test_options())
    true = own.residuals(np.asarray(feasid.base_parameters(robot).K) @ np.nan_to_num(robot.values))
    reduced = feasid.reduce(test, base=fit.base, **fit.test_options())
    assert np.linalg.norm(reduced.residuals(fit.beta)) <= WORSE * np.linalg.norm(true)
    table = log.rename(columns={"q_crank": "q_elbow", "tau_crank": "tau_elbow"})
    serial = feasid.fit(table, feasid.load_robot(arm(False)))
    assert fit.quality.level == "good"
    assert serial.quality.errors.overall_error(serial.quality.errors.model) > (
        fit.quality.errors.overall_error(fit.quality.errors.model)
    )


MISTAKES = [
    (("elbow", "shoulder", (0, 0, 0.1)), "hangs on"),
    (("turn", "shoulder", (0, 0, 0.1)), "are not hinges with parallel axes"),
    (("shoulder", "elbw", (0, 0, 0.1)), "elbw"),
    (("shoulder", "elbow", (0, 0)), "reach"),
]


@pytest.mark.parametrize(("given", "message"), MISTAKES)
def test_what_is_no_parallelogram_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        feasid.parallelogram(feasid.load_robot(arm(False)), *given)


def test_a_name_is_given_once():
    with pytest.raises(InputError, match="'upper' is taken"):
        feasid.parallelogram(feasid.load_robot(arm(False)), "shoulder", "elbow", (0.1, 0, 0),
                             motor="upper")  # fmt: skip


def test_a_table_beside_a_file_says_so_too(tmp_path, capsys):
    path, line = tmp_path / "master.urdf", {"shoulder": "shoulder", "elbow": "elbow"}
    feasid.write(feasid.load_robot(arm(False)), path)
    table = {"format": "feasid loops", "version": 1}
    table["parallelograms"] = [{**line, "reach": [-0.1, 0, 0]}]
    loop_table_path(path).write_text(json.dumps(table))
    robot = feasid.load_robot(path)
    plain = feasid.load_robot(path, sidecar=False)
    told = feasid.parallelogram(plain, "shoulder", "elbow", (-0.1, 0, 0))
    assert robot.coordinates == told.coordinates == ("turn", "shoulder", "crank")
    assert feasid.base_parameters(robot).size == feasid.base_parameters(told).size
    assert main(["base-parameters", str(path)]) == 0
    assert "crank" in capsys.readouterr().out
    table["parallelograms"][0]["rech"] = 1
    loop_table_path(path).write_text(json.dumps(table))
    with pytest.raises(feasid.FeasidError, match=r"unknown entry 'rech'.*did you mean 'reach'"):
        feasid.load_robot(path)


def test_axes_need_not_pass_through_origins():
    """Frames of a Denavit-Hartenberg table sit at the far ends of links."""
    bar, move = [0.01, 0, 0, 0.01, 0, 0.02, 0.05, 0.01, 0, 0.5], [0, 0, 1, 0, 0, 0]
    near = [
        feasid.Body("1", None, motion=move, inertial=bar),
        feasid.Body("2", "1", position=[0.3, 0, 0], motion=move, inertial=bar),
    ]
    far = feasid.Robot.from_dh([(0, 0.3, 0, 0), (0, 0.25, 0, 0)], gravity=(0, -9.81, 0))
    moved = [np.r_[change_frame(np.eye(3), [-a, 0, 0]) @ bar] for a in (0.3, 0.25)]
    far = far.with_values(np.concatenate(moved))
    given = {"shoulder": "1", "elbow": "2", "reach": (-0.1, 0, 0), "crank": bar, "rod": bar}
    robots = [feasid.parallelogram(r, **given) for r in (feasid.Robot(near, (0, -9.81, 0)), far)]
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 9, 2))
    ours, theirs = (feasid.inverse_dynamics(r, *motion) for r in robots)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
