"""What is done with a fit, and that it agrees with the fit, with the truth and with what was asked.

An act gets the world, the fit and an empty folder. It fails with an assertion where what it returns
is wrong without a word; a refusal is a `FeasidError` and judged by the caller.
"""

from __future__ import annotations

import contextlib
import subprocess
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import feasid
from feasid.core.errors import FeasidError
from feasid.identification.effects.corrections import LogCorrection
from feasid.identification.effects.joint_terms import drive_key
from feasid.options.tables import LogOptions, ReduceOptions
from feasid.robot.joint_terms import RIPPLE, SEARCHED

from .arms import LOAD, RATE, driven_coordinates, link_coordinates
from .judge import (
    TIMES,
    UnequalError,
    assert_right_or_in_doubt,
    assert_same,
    doubts,
    is_right,
    reported_error,
)

CONTRADICTION = 2.0
"""Times the error on stretches that were not fitted that the one on fitted ones may have."""
EQUAL = 1e-6
"""Relative difference of torques of the same model through a file or another program."""
SOLVED = 1e-3
"""Relative difference of torques that two solvers' answers to one problem may have."""
DRAWS = 20
ALARMS = 0.01
"""Share of a free motion's samples with contact that passes; one alarm an hour is promised."""
DOUBTED_ALARMS = 0.1
"""The same of a fit that is in doubt."""
SETTLED = 100
"""Samples after which observers and filters have forgotten where they began."""
LEVEL = 0.999
MAIN = """#include "arm.h"
#include <stdio.h>
int main(void) { printf("%.17g\\n", (double)arm_self_test()); return 0; }
"""
THINNED = 20


def torques(world, robot, every=THINNED):
    """Of a robot on the test motion."""
    return feasid.inverse_dynamics(robot, *(x[::every] for x in world.motion))


def difference(world, a, b):
    """Of two robots' torques on the test motion, relative."""
    one, other = torques(world, a), torques(world, b)
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def errors(world, fit, folder):
    """Errors on another log are those that the fit expected.

    Or they say which joints were taken to rest: the row's `rest` sets slow motion still, and the
    friction of it is missed.
    """
    found = fit.errors(world.test_log)
    assert np.isfinite(found["all"])
    if not doubts(fit) and "rest" not in {note.code for note in found.attrs["notes"]}:
        assert found["all"] <= TIMES * reported_error(world, fit, found)


def verdict(world, fit, folder):
    """A fit that misses its own log by more than others of it miss stretches is in doubt."""
    quality = fit.quality
    assert repr(quality)
    held_out = quality.errors.overall_error(quality.errors.model)
    assert doubts(fit) or fit.relative_error["all"] <= CONTRADICTION * held_out, (
        f"{fit.relative_error['all']:.3g} in sample, {held_out:.3g} on held-out stretches"
    )
    have = {drive_key(d): {*d.symbols} for d in fit.robot.drives}
    for e in fit.selected:
        words = e.at.effect.terms if e.entered else ()
        needed = {s for w in words[:1] for s in SEARCHED[w]} - {*RIPPLE[2:]}
        assert needed <= have.get(e.joint, set()), e


def samples(world, fit, folder):
    """Robots that are drawn predict as the fit does, and keep what the fit had to keep."""
    drawn = fit.sample(DRAWS)
    assert repr(drawn)
    assert len(drawn) == DRAWS
    told = reported_error(world, fit)
    asked = fit.options["calibration"]
    if isinstance(asked, dict) and "gain" in asked:  # the factor that all share is left open
        world = replace(world, kind="gains")
    off = [world.error(robot) for robot in drawn]
    assert doubts(fit) or np.median(off) <= 2 * TIMES * told, (np.median(off), told)


def ranges(world, fit, folder):
    """Ranges of masses and joint terms hold the fit; those of a right fit hold the truth.

    Unless they say that the fit is outside, or that systematic errors are not in them.
    """
    robot = fit.base.robot
    names = [n for n in robot.parameter_names if n[1] in ("m", "fv", "fc")]
    found = fit.ranges(names, level=LEVEL)
    assert repr(found)
    said = {note.code for note in found.notes}
    limited = doubts(fit) or bool(said & {"systematic", "systematic-unknown"})
    true, values = world.parameters(robot), fit.delta
    place = {name: k for k, name in enumerate(robot.parameter_names)}
    for name, one in zip(names, found, strict=True):
        k, slack = place[name], 1e-9 * (1 + abs(values[place[name]]))
        inside = one.lower - slack <= values[k] <= one.upper + slack
        assert inside or doubts(fit) or "fit-outside" in said, f"{one}, fitted {values[k]}"
        if world.honest and world.kind == "clean" and not limited:
            assert one.lower - slack <= true[k] <= one.upper + slack, f"{one}, true {true[k]}"


def problem(world, fit, folder):
    """The convex program of a fit, solved by another solver, has the fit for its optimum."""
    program = fit.problem()
    with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver="CLARABEL")
    if program.status not in cp.settings.SOLUTION_PRESENT:  # says so, and is not wrong
        return
    robot, delta = fit.robot, np.array(fit.robot.values)
    owners = np.array([name for name, _ in robot.parameter_names])
    for name, variable in program.var_dict.items():
        if name in owners:
            delta[owners == name] = np.ravel(variable.value)
    assert difference(world, robot.with_values(delta), robot) <= SOLVED + fit.estimator.slack


def verify(world, fit, folder):
    """The certificate says feasible, of exactly this fit."""
    said = fit.certificate.verify()
    assert said.startswith("feasible"), said


def write(world, fit, folder):
    """The file read back, with its sidecar, is the fit; its errors are those that the fit told."""
    kind = ".xml" if world.robot in ("loop", "elastic") else ".urdf"
    done = fit.write(folder / f"arm{kind}", force=True)
    assert str(done)
    back = feasid.load_robot(folder / f"arm{kind}", **_reading(world))
    found = fit.calibration.correction.values
    zeros = LogCorrection({m: v for m, v in found.items() if m.kind == "zero"})
    assert difference(world, zeros.correct_robot(back), fit.robot) <= EQUAL
    told = float(fit.relative_error["all"])
    assert done.errors.loc["all", "fit"] == pytest.approx(told, rel=0.05)


def _reading(world):
    return {"floating": True} if world.robot == "floating" else {}


def simulate(world, fit, folder):
    """Short simulations stay with the log."""
    found = fit.simulate(horizon=0.1)
    assert repr(found)
    assert np.isfinite(found.rms).all() or doubts(fit)


def reloaded(fit, folder):
    """A fit that was saved and read back, after it was compared with the one that was saved."""
    fit.save(folder / "one.feasid")
    try:
        saved = feasid.load(folder / "one.feasid")
    except FeasidError as error:
        raise UnequalError(f"not read: {error}") from error
    assert_same(fit, saved)
    return saved


def save(world, fit, folder):
    """A fit that was saved and read back is the same model with the same words."""
    saved = reloaded(fit, folder)
    one, other = fit.errors(world.test_log), saved.errors(world.test_log)
    np.testing.assert_allclose(other, one, rtol=EQUAL)
    if world.robot == "floating":  # of which predictions with contacts are refused
        return
    predicted, again = fit.predict(world.test_log), saved.predict(world.test_log)
    np.testing.assert_allclose(again, predicted, rtol=EQUAL, atol=EQUAL)


def streamed(world):
    """Positions, speeds and torques as the sensors give them while the robot runs.

    Of all coordinates but those of a floating base; no torque acts where there is no motor.
    """
    motors = {place: f"tau_{j}" for j, place in driven_coordinates(world.truth).items()}
    links = {place: f"q_{j}" for j, place in link_coordinates(world.truth).items()}
    springs = {motor: f"theta_{j}" for j, motor in world.truth.elastic.items()}
    names = {world.truth.coordinates.index(motor): c for motor, c in springs.items()} | links
    q = np.column_stack([world.live[names[k]] for k in sorted(names)])
    tau = np.column_stack([world.live.get(motors.get(k), 0.0 * q[:, 0]) for k in sorted(names)])
    return q, np.gradient(q, 1 / RATE, axis=0), tau


def contact(world, fit, folder):
    """An observer of external torques reports no contact on a motion without any."""
    observer = feasid.ExternalTorque(fit, RATE, "1/hour", backend="python")
    assert repr(observer)
    if world.kind == "commands":  # there are no torques to observe
        return
    q, dq, tau = streamed(world)
    seen = [
        observer.update(t, *row).contact
        for t, row in zip(world.live["t"], zip(q, dq, tau, strict=True), strict=True)
    ]
    share = float(np.mean(seen[SETTLED:]))
    assert share <= (DOUBTED_ALARMS if doubts(fit) else ALARMS), (
        f"contact in {share:.0%} of the samples of a free motion"
    )


def online(world, fit, folder):
    """Learning on while the robot runs does not spoil a right model without a word."""
    if world.kind == "commands":  # there are no torques to learn from
        return
    learner = feasid.OnlineFit(fit.robot, RATE)
    q, _, tau = streamed(world)
    learner.extend(q, tau)
    found = learner.estimate()
    assert repr(found)
    if is_right(world, fit):
        told = max(reported_error(world, fit), float(np.sqrt(max(1.0 - found.r2, 0.0))))
        true = world.error(found.robot)
        assert not found.decision.open or true <= TIMES * told, f"{told:.3g} told, {true:.3g} true"


def code(world, fit, folder):
    """C code of the model passes its own test when it is compiled."""
    fit.export_c(folder / "arm.c", routines=("inverse_dynamics",))
    (folder / "main.c").write_text(MAIN)
    command = ["cc", "-std=c99", "-Wall", "-Werror", "arm.c", "main.c", "-o", "arm", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["./arm"], cwd=folder, check=True, capture_output=True, text=True)
    assert float(done.stdout) <= EQUAL


LOAD_SHARE, LOAD_DEVIATIONS = 0.1, 5.0
"""Of its mass, or in its deviations, by which a load that is called good may be wrong."""


def payload(world, fit, folder):
    """A load that is called good is the one that the robot carried."""
    body = None if world.robot == "locked" else world.hand
    found = feasid.payload(world.loaded, fit, body=body)
    assert repr(found)
    if world.robot == "locked" or found.level != "good" or not world.honest:
        return  # the third body's frame is of another link, or there is nothing to compare with
    assert_mass(found)


def assert_mass(found):
    """Fail where a load is not that of the log."""
    off = abs(found.mass - LOAD[9])
    assert off <= LOAD_SHARE * LOAD[9] + LOAD_DEVIATIONS * found.mass_std, repr(found)


def wrist(world, fit, folder):
    """So is one that a wrist sensor weighs, whose errors and those of the arm it tells."""
    asked = {**world.options, **world.asked}
    reading = {k: v for k, v in asked.items() if k in LogOptions.__annotations__}
    for calibration in ("usual", None):
        found = feasid.payload_from_wrench(
            world.loaded, fit.robot, body=world.hand, calibration=calibration, **reading
        )
        assert repr(found)
        if found.level == "good" and world.honest:
            assert_mass(found)


def spring(world, fit, folder):
    """A spring in a joint that does not stretch changes nothing, nor does one taken out again."""
    rigid, joint = fit.robot.without_elastic_joints(), world.joints[-1]
    springy = rigid.with_elastic_joints([joint])
    # The spring, and friction of the bearing, which have no values yet.
    springy = springy.with_values(np.nan_to_num(springy.values))
    places = [rigid.coordinates.index(j.removesuffix("_motor")) for j in springy.coordinates]
    motion = [x[::THINNED][:, rigid_places(fit.robot)] for x in world.motion]
    both = feasid.inverse_dynamics(springy, *(x[:, places] for x in motion))
    sums = np.zeros_like(motion[0])
    np.add.at(sums, (slice(None), places), both)
    needed = feasid.inverse_dynamics(rigid, *motion)
    np.testing.assert_allclose(sums, needed, atol=EQUAL * np.abs(needed).max())
    again = feasid.inverse_dynamics(springy.without_elastic_joints(), *motion)
    np.testing.assert_allclose(again, needed, atol=EQUAL * np.abs(needed).max())


def rigid_places(robot):
    """Of the coordinates that the robot without springs has."""
    return [k for k, j in enumerate(robot.coordinates) if j not in robot.elastic.values()]


def no_motor(world, fit, folder):
    """A joint whose motor is taken away needs the same torque of somebody else."""
    robot = fit.robot.with_passive_joints(world.joints[-1:])
    assert difference(world, robot, fit.robot) == 0.0
    feasid.write(robot, folder / "arm.xml")
    back = feasid.load_robot(folder / "arm.xml", **_reading(world))
    assert back.passive == robot.passive


def store(world, fit, folder):
    """Logs from a store are those that were reduced, and fits of them are right or in doubt."""
    asked = {**world.options, **world.asked}
    reading = {k: v for k, v in asked.items() if k in ReduceOptions.__annotations__}
    logs = feasid.LogStore(folder / "store", world.description, **reading)
    logs.add(world.log, "one", "2026-11-28")
    logs.add(world.test_log, "one", "2026-11-29")
    first = next(iter(logs.logs("one").values()))
    mine = feasid.reduce(world.log, world.description, **reading)
    assert first.to_bytes() == mine.to_bytes(), "the store has other bits"
    assert str(logs.drift("one"))
    found = logs.fit("one", **{k: v for k, v in asked.items() if k not in reading})
    # Reduced logs do not say how others are read.
    others = {k: v for k, v in asked.items() if k in LogOptions.__annotations__}
    assert_right_or_in_doubt(world, found, found.errors(world.test_log, **others))


def fleet(world, fit, folder):
    """Each robot of a fleet is right or in doubt, and so is one that is fitted to its type."""
    logs = {"one": world.log, "two": world.test_log}
    found = feasid.fit_fleet(logs, world.description, **{**world.options, **world.asked})
    assert repr(found)
    for each in found.fits.values():
        assert_right_or_in_doubt(world, each)
    found.save(folder / "fleet.feasid")
    saved = feasid.load(folder / "fleet.feasid")
    assert saved.table.equals(found.table)
    one, other = found.fit(world.test_log), saved.fit(world.test_log)
    assert one.delta.tobytes() == other.delta.tobytes(), "the loaded fleet fits otherwise"
    assert_right_or_in_doubt(world, one)


ACTS = {
    f.__name__: f
    for f in (
        *(errors, verdict, samples, ranges, problem, verify, write, simulate, save, contact),
        *(online, code, payload, store, fleet, wrist, spring, no_motor),
    )
}
