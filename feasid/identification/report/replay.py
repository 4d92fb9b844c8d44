"""A log replayed through a fit: what was measured beside what the model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.signal import fftconvolve

from feasid.core.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics
from feasid.errors import InputError
from feasid.identification.fitted import Fitted
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording
from feasid.reduction.equations import Window
from feasid.reduction.reduce import measured_rows
from feasid.robot.description import Robot
from feasid.robot.joint_terms import TERMS


@dataclass(frozen=True, eq=False)
class Replay:
    """Runs of a log and the torques that a robot with parameters has there.

    Attributes
    ----------
    robot : Robot
        With the identified parameters.
    motion : Motion
        The log, prepared as the fitted one was.
    """

    robot: Robot
    motion: Motion

    @classmethod
    def from_fit(cls, fit: Fitted, log: Any = None) -> Replay:
        """Predict the torques of a log, or of the first fitted one; see `Fit.plot` for errors."""
        if not measured_rows(fit.reduced).all():
            raise InputError(
                "drawings show the torques of all joints, and the fit knows some as not measured"
            )
        recording = select_recording(fit, log)
        motion = recording.motion(fit.description, **fit.test_options())
        if not all(np.isfinite(run.tau).all() for run in motion.runs):
            raise InputError("the log has no torques to draw")
        return cls(fit.robot, motion)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.motion.coordinates

    @property
    def runs(self) -> Sequence[Run]:
        """Stretches without gaps."""
        return self.motion.runs

    @cached_property
    def predicted_torques(self) -> tuple[Array, ...]:
        """Torques of the model per run, shape (samples, dof) [N m or N]."""
        return tuple(inverse_dynamics(self.robot, r.q, r.dq, r.ddq) for r in self.runs)

    @cached_property
    def residuals(self) -> tuple[Array, ...]:
        """Measured less predicted torques per run."""
        return tuple(r.tau - p for r, p in zip(self.runs, self.predicted_torques, strict=True))

    @cached_property
    def frictionless(self) -> tuple[Array, ...]:
        """Torques of the model without friction, per run."""
        values = self.robot.values.copy()
        for k in range(len(self.robot.drives)):
            for symbol, column in self.robot.drive_columns(k).items():
                if symbol in TERMS and TERMS[symbol].kind == "friction":
                    values[column] = 0.0
        return tuple(
            inverse_dynamics(self.robot, r.q, r.dq, r.ddq, parameters=values) for r in self.runs
        )

    @property
    def cutoff(self) -> float | None:
        """Of the low-pass that both sides went through in the fit [Hz]; None for none."""
        return self.motion.cutoff if self.motion.filtering == "equations" else None

    @cached_property
    def compared_torques(self) -> tuple[tuple[Array, Array, Array], ...]:
        """Times, measured and predicted torques per run as the fit compares them.

        Both sides are behind the same low-pass; runs shorter than its window are left out.
        """
        pairs = zip(self.runs, self.predicted_torques, strict=True)
        if self.cutoff is None:
            return tuple((run.t, run.tau, predicted) for run, predicted in pairs)
        out = []
        for run, predicted in pairs:
            window = Window(self.cutoff, run.rate)
            inside = slice(window.half_width, len(run) - window.half_width)
            if inside.stop > inside.start:
                taps = window.taps[:, None]
                measured, model = (
                    fftconvolve(x, taps, "valid", axes=0) for x in (run.tau, predicted)
                )
                out.append((run.t[inside], measured, model))
        return tuple(out)

    def all(self, parts: Sequence[Array]) -> Array:
        """Runs one after the other."""
        return np.concatenate(list(parts))


def select_recording(fit: Fitted, log: Any) -> Recording:
    """The given log, or the first one of the fit."""
    if log is not None:
        return Recording.from_source(log)
    if not fit.recordings:
        raise InputError("reduced data hold no samples to draw: pass the log, fit.plot(log)")
    return fit.recordings[0]
