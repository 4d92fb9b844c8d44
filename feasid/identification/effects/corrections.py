"""Values of errors of a log, and the log and the robot without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.identification.effects.table import (
    EFFECTS,
    USUAL,
    Mistake,
    cold_friction,
    horizontal_axes,
    size_of,
)
from feasid.logs.motion import Run
from feasid.logs.units import unit_factor
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.rotations import compose, exponential


@dataclass(frozen=True, eq=False)
class LogCorrection:
    """Values of the mistakes that are corrected in a log and its robot."""

    values: Mapping[Mistake, Array]  #: parameters [SI].

    def add_step(self, mistakes: Sequence[Mistake], step: Array) -> LogCorrection:
        """The same with a step of the parameters of these mistakes, one after the other."""
        out, at = dict(self.values), 0
        for mistake in mistakes:
            kind = EFFECTS[mistake.kind]
            change = np.clip(step[at : at + kind.size], -kind.limit, kind.limit)
            out[mistake] = out.get(mistake, np.zeros(kind.size)) + change
            at += kind.size
        return LogCorrection(out)

    def parameters_of(self, mistakes: Sequence[Mistake]) -> Array:
        """Parameters of these errors, concatenated; zero where nothing is corrected."""
        none = [np.zeros(0)]
        return np.concatenate(
            [*none, *(self.values.get(m, np.zeros(EFFECTS[m.kind].size)) for m in mistakes)]
        )

    def with_delay(self, seconds: float) -> LogCorrection:
        """The same with this delay of all torques, unless it corrects one."""
        delay = {Mistake("delay"): np.array([seconds])} if seconds else {}
        return LogCorrection({**delay, **self.values})

    def values_by_joint(self, kind: str) -> dict[int, float]:
        """First parameters of this kind by joint."""
        return {m.joint: float(v[0]) for m, v in self.values.items() if m.kind == kind}

    def correct_robot(self, robot: Robot) -> Robot:
        """The robot with the corrected direction of gravity and the corrected joint zeros."""
        for mistake, value in self.values.items():
            if mistake.kind == "tilt":
                robot = robot.with_gravity(
                    rotation_by_vector(value @ horizontal_axes(robot.gravity)) @ robot.gravity
                )
        zeros = self.values_by_joint("zero")
        if not zeros:
            return robot
        bodies = tuple(
            body_with_zero_offset(b, zeros[k]) if k in zeros else b
            for k, b in enumerate(robot.bodies)
        )
        return replace(robot, bodies=bodies)

    def correct_run(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the torques as they are: on time, and in N m."""
        run = self.with_warm_friction(run, robot)
        late, gains, own = (
            self.values_by_joint("delay"),
            self.values_by_joint("gain"),
            self.values_by_joint("joint-delay"),
        )
        if not (late or gains or own):
            return run
        tau = run.tau.copy()
        for j in range(tau.shape[1]):
            d = late.get(-1, 0.0) + own.get(j, 0.0)
            if d:
                tau[:, j] = np.interp(run.t + d, run.t, tau[:, j])
            tau[:, j] *= np.exp(-gains.get(j, 0.0))
        return replace(run, tau=tau)

    def with_warm_friction(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the friction of warm joints, in torques as they are logged."""
        cold = {m: v for m, v in self.values.items() if m.kind == "warm-up"}
        if not cold:
            return run
        tau = run.tau.copy()
        for mistake, value in cold.items():
            tau[:, mistake.joint] -= value @ cold_friction(run, robot, mistake)
        return replace(run, tau=tau)

    @property
    def shifts_torques(self) -> bool:
        """Whether torques are shifted in time."""
        return bool(self.values_by_joint("delay") or self.values_by_joint("joint-delay"))


NOTHING = LogCorrection({})


def corrected_options(
    options: Mapping[str, Any], correction: LogCorrection, robot: Robot
) -> dict[str, Any]:
    """Options to prepare other logs of the same robot and sensors: its gains and its delay."""
    out = dict(options)
    gains, late = correction.values_by_joint("gain"), correction.values_by_joint("delay")
    if gains:
        own = dict(options.get("units") or {})
        for joint, gain in gains.items():
            name = robot.joints[joint]
            own[f"tau_{name}"] = unit_factor(own, "tau", name) * float(np.exp(-gain))
        out["units"] = own
    if late:
        out["delay"] = (options.get("delay") or 0.0) - late[-1]  # the option is how far ahead
    return out


def wide_widths(mistakes: Sequence[Mistake]) -> Array:
    """Wide standard deviations of the parameters of these errors, concatenated."""
    return np.array([EFFECTS[m.kind].width for m in mistakes for _ in range(size_of(m))])


def rotation_by_vector(vector: Array) -> Array:
    """The rotation by a vector [rad], shape (3, 3)."""
    rotation, _ = exponential(np.r_[vector, 0.0, 0.0, 0.0])
    return np.asarray(rotation)


def body_with_zero_offset(body: Body, zero: float) -> Body:
    """The body of a joint whose true position is `zero` more than the logged one."""
    rotation, position = exponential(body.motion[:, 0] * zero)
    turned, moved = compose(body.rotation, body.position, rotation, position)
    return replace(body, rotation=turned, position=moved)


def usual_widths(calibration: Any, period: float) -> dict[str, float]:
    """Standard deviations by kind [SI] of an option ``calibration``; empty if it is None.

    `calibration`: a mapping's entries replace `USUAL`; 0 leaves a kind out. Delays are in samples;
    `period`: of the samples [s]. Raises InputError: a name is none of `USUAL`.
    """
    if calibration is None:
        return {}
    asked = calibration if isinstance(calibration, Mapping) else {}
    for name in asked:
        if name not in USUAL:
            hint = did_you_mean(name, USUAL)
            raise InputError(
                f"calibration: there is no correction {name!r}{hint}; there are {', '.join(USUAL)}",
                option="calibration",
            )
    widths = {**USUAL, **asked}
    widths["delay"] *= period
    return {name: float(w) for name, w in widths.items() if w}
