"""Values of errors of a log, and the log and the robot without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.identification.effects.table import USUAL, EffectAt, cold_friction, horizontal_axes
from feasid.logs.motion import Run
from feasid.logs.temperature import friction_change
from feasid.logs.units import unit_factor
from feasid.robot.description import Robot
from feasid.robot.rotations import compose, exponential


@dataclass(frozen=True, eq=False)
class LogCorrection:
    """Values of the errors that are corrected in a log and its robot."""

    values: Mapping[EffectAt, Array]  #: parameters [SI].

    def add_step(self, effects: Sequence[EffectAt], step: Array) -> LogCorrection:
        """The same with a step of the parameters of these errors, one after the other."""
        out, start = dict(self.values), 0
        for at in effects:
            size, limit = at.effect.size, at.effect.limit
            change = np.clip(step[start : start + size], -limit, limit)
            out[at] = out.get(at, np.zeros(size)) + change
            start += size
        return LogCorrection(out)

    def parameters_of(self, effects: Sequence[EffectAt]) -> Array:
        """Parameters of these errors, concatenated; zero where nothing is corrected."""
        values = (self.values.get(m, np.zeros(m.effect.size)) for m in effects)
        return np.concatenate([np.zeros(0), *values])

    def with_delay(self, seconds: float) -> LogCorrection:
        """The same with this delay of all torques, unless it corrects one."""
        delay = {EffectAt("delay"): np.array([seconds])} if seconds else {}
        return LogCorrection({**delay, **self.values})

    def values_by_joint(self, kind: str) -> dict[int, float]:
        """First parameters of this kind by joint."""
        return {m.joint: float(v[0]) for m, v in self.values.items() if m.kind == kind}

    def correct_robot(self, robot: Robot) -> Robot:
        """The robot with the corrected direction of gravity and the corrected joint zeros."""
        for at, value in self.values.items():
            if at.kind == "tilt":
                turn, _ = exponential(np.r_[value @ horizontal_axes(robot.gravity), np.zeros(3)])
                robot = robot.with_gravity(np.asarray(turn) @ robot.gravity)
        zeros, bodies = self.values_by_joint("zero"), [*robot.bodies]
        # The true position is `zero` more than the logged one: the body is turned or moved by it.
        for k, zero in zeros.items():
            body = bodies[k]
            rotation, position = exponential(body.motion[:, 0] * zero)
            turned, moved = compose(body.rotation, body.position, rotation, position)
            bodies[k] = replace(body, rotation=turned, position=moved)
        return replace(robot, bodies=tuple(bodies)) if zeros else robot

    def correct_run(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the torques as they are: on time, and in N m."""
        run = self.with_warm_friction(run, robot)
        late, gains, delays = map(self.values_by_joint, ("delay", "gain", "joint-delay"))
        law = self.friction_per_kelvin(robot)
        if not (late or gains or delays or law):
            return run
        tau = run.tau.copy()
        for j in range(tau.shape[1]):
            d = late.get(-1, 0.0) + delays.get(j, 0.0)
            if d:
                tau[:, j] = np.interp(run.t + d, run.t, tau[:, j])
            # Gains are logarithms of factors.
            tau[:, j] *= np.exp(-gains.get(j, 0.0))
        return replace(run, tau=tau - friction_change(run, law, robot.joints))

    def friction_per_kelvin(self, robot: Robot) -> dict[str, tuple[float, ...]]:
        """The friction that changes with the temperature, as the option of this name has it."""
        return {
            robot.joints[at.joint]: (float(value[0]), float(value[1]), at.origin, at.number)
            for at, value in self.values.items()
            if at.kind == "temperature"
        }

    def with_warm_friction(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the friction of warm joints, in torques as they are logged."""
        cold = {m: v for m, v in self.values.items() if m.kind == "warm-up"}
        if not cold:
            return run
        tau = run.tau.copy()
        for at, value in cold.items():
            tau[:, at.joint] -= value @ cold_friction(run, robot, at)
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
        units = dict(options.get("units") or {})
        for joint, gain in gains.items():
            name = robot.joints[joint]
            units[f"tau_{name}"] = unit_factor(units, "tau", name) * float(np.exp(-gain))
        out["units"] = units
    if law := correction.friction_per_kelvin(robot):
        out["friction_per_kelvin"] = {**(options.get("friction_per_kelvin") or {}), **law}
    if late:
        out["delay"] = (options.get("delay") or 0.0) - late[-1]  # the option is how far ahead
    return out


def wide_widths(effects: Sequence[EffectAt]) -> Array:
    """Wide standard deviations of the parameters of these errors, concatenated."""
    return np.array([m.effect.width for m in effects for _ in range(m.effect.size)])


def usual_widths(calibration: Any, period: float) -> dict[str, float]:
    """Standard deviations by kind [SI] of an option ``calibration``; empty if it is None.

    `calibration`: a mapping's entries replace `USUAL`; 0 leaves a kind out. Delays are in samples;
    `period`: of the samples [s]. Raises InputError: a name is none of `USUAL`.
    """
    if calibration is None:
        return {}
    entries = calibration if isinstance(calibration, Mapping) else {}
    for name in entries:
        if name not in USUAL:
            hint = did_you_mean(name, USUAL)
            raise InputError(
                f"calibration: there is no correction {name!r}{hint}; there are {', '.join(USUAL)}",
                option="calibration",
            )
    widths = {**USUAL, **entries}
    widths["delay"] *= period
    return {name: float(w) for name, w in widths.items() if w}
