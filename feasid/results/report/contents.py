"""Contents of a report as plain data: ``report.json``, and all that the page is made of.

The schema has a version, `VERSION`, which changes when the meaning or name of an entry does;
entries may be added without. Numbers that are not finite are null. Errors are relative to the
torque, everything else is in SI units and radians. A `PredictedLog` is a log and
a fit's torques on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.signal import fftconvolve

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.notes import as_json
from feasid.identification.assessment.checks import GRADED
from feasid.identification.assessment.quality import joints_that_follow, remarks
from feasid.identification.effects.joint_terms import FRICTION_SYMBOLS
from feasid.identification.fitted import FittedModel, provenance
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.identification.regression.parallel import Source
from feasid.identification.regression.reduce import measured_rows
from feasid.logs.motion import Motion, Run
from feasid.logs.recording import Recording
from feasid.results.report.robots import robot_views
from feasid.results.report.summary import count_precise
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.assessment.simulation import Simulation


@dataclass(frozen=True, eq=False)
class PredictedLog:
    """Runs of a log and the torques that a robot with parameters has there."""

    robot: Robot  #: With the identified parameters.
    motion: Motion  #: The log, prepared as the fitted one was.

    @classmethod
    def from_fit(cls, fit: FittedModel, log: Any = None) -> PredictedLog:
        """Predict the torques of a log, or of the first fitted one; see `Fit.plot` for errors."""
        if not measured_rows(fit.reduced).all():
            raise InputError(
                "figures need the torques of all joints, and some were not measured for this fit"
            )
        motion = select_recording(fit, log).motion(fit.description, **fit.test_options())
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
        rubs = [symbol in FRICTION_SYMBOLS for _, symbol in self.robot.parameter_names]
        robot = self.robot.with_values(np.where(rubs, 0.0, self.robot.values))
        return tuple(inverse_dynamics(robot, r.q, r.dq, r.ddq) for r in self.runs)

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
            window = GaussianLowPass(self.cutoff, run.rate)
            inside = slice(window.half_width, len(run) - window.half_width)
            if inside.stop > inside.start:
                taps = window.taps[:, None]
                measured, model = (
                    fftconvolve(x, taps, "valid", axes=0) for x in (run.tau, predicted)
                )
                out.append((run.t[inside], measured, model))
        return tuple(out)


def select_recording(fit: FittedModel, log: Any) -> Recording:
    """The given log, or the first one of the fit."""
    if log is not None:
        return Recording.from_source(log)
    if not fit.logs:
        raise InputError("reduced data hold no samples to draw: pass the log, fit.plot(log)")
    return fit.logs[0]


SCHEMA, VERSION = "feasid report", 2

POINTS = 100_000  #: Points of all curves together, so that a page stays below three megabytes.

MOST, FEWEST = 1500, 50  #: Number of points of one curve.

DIGITS = 5  #: Significant digits of curves.


def report_contents(
    fit: FittedModel,
    tested: pd.Series[float] | None = None,
    tests: Sequence[Source] = (),
    fitted: Sequence[Source] = (),
    command: str = "",
    simulation: Simulation | str = "",
) -> dict[str, Any]:
    """Contents of the report of a fit.

    `tested`: errors on logs that were not fitted; `tests`, `fitted`: logs to draw if they have
    samples; `command`: the command that made the report; `simulation`: of a log, or the reason why
    there is none.
    """
    solution = fit.solution
    where, margin = min(solution.margins.items(), key=lambda item: item[1])
    contents: dict[str, Any] = as_json(
        {
            "schema": SCHEMA,
            "version": VERSION,
            "robot": {
                "name": fit.robot.name,
                "bodies": len(fit.robot.bodies),
                "joints": fit.robot.coordinates,
                "parameters": fit.base.unknowns,
                "base_parameters": len(fit.beta),
                "samples": fit.reduced.samples,
                "condition_number": fit.condition_number,
                "cutoff": fit.reduced.cutoff,
            },
            "feasibility": {
                "feasible": True,
                "consistency": solution.consistency,
                "margin": margin,
                "tightest": where,
                "verified": solution.verified,
                "price": None if np.isnan(fit.price) else fit.price,
                "repair": fit.optimum.residual_increase,
                "tie_break": solution.tie_break,
            },
            "prediction": _prediction(fit, tested),
            "claims": _evidence_entries(fit, tested),
            "bodies": _table_to_data(fit.bodies),
            "robots": [vars(view) for view in robot_views(fit)],
            "joint_terms": _table_to_data(fit.joint_terms),
            "base_parameters": _table_to_data(fit.base_table),
            "simulation": _simulation(simulation),
            "curves": _log_curves(fit, tests, fitted),
            "notes": [{"text": str(n), "code": n.code} for n in fit.notes],
            "made": {**provenance(fit), "options": fit.log_options, "command": command},
        }
    )
    return contents


def _prediction(fit: FittedModel, tested: pd.Series[float] | None) -> dict[str, Any]:
    quality, errors, graded = fit.quality, fit.quality.errors, fit.uses_by_joint
    rows = []
    for k, joint in enumerate(graded.index):
        row = {
            "joint": joint,
            "verdict": graded["feed-forward"].iloc[k],
            "gravity": graded["gravity compensation"].iloc[k],
            "unseen": errors.model[k],
            "fitted": fit.relative_error[joint],
            "least_squares": errors.least_squares[k],
            "description": errors.description[k],
        }
        rows.append(row if tested is None else row | {"test": tested.get(joint)})
    return {
        "level": quality.level,
        "reasons": [str(r) if r.code in GRADED else r.with_code for r in quality.reasons],
        "remarks": remarks(fit.evidence),
        "uses": fit.uses.reset_index().to_dict("records"),
        "error": errors.overall_error(errors.model),
        "unseen": errors.unseen,
        "description": errors.overall_error(errors.description),
        "least_squares": errors.overall_error(errors.least_squares),
        "fitted": fit.relative_error["all"],
        "test": None if tested is None else tested["all"],
        "joints": rows,
    }


def _evidence_entries(fit: FittedModel, tested: pd.Series[float] | None) -> list[dict[str, str]]:
    quality = fit.quality
    missed = 100 * quality.errors.overall_error(quality.errors.model)
    where = "held-out segments" if quality.errors.unseen else "the fitted log"
    doubts = [n for n in fit.notes if n.values.get("level") in ("error", "warning")]
    sentence = f"{len(doubts) or 'no'} errors or warnings about the log"
    if follow := joints_that_follow(fit.evidence):
        sentence += f"; the model lacks a term at {len(follow)} of {fit.robot.dof} joints"
    of_tests = () if tested is None else (
        f"torque error {100 * tested['all']:.3g} % on a log that was not fitted",
        tested.attrs.get("leakage") or "the test log",
        "fit.errors(log), feasid errors",
    )  # fmt: skip
    claims = [
        (
            f"every body is physically consistent, {fit.solution.consistency} consistency",
            "a certificate in exact rational arithmetic, checked independently of the solver",
            "fit.certificate.verify(), or feasid verify FILE (of --certificate)",
        ),
        (
            f"torque error {missed:.3g} % on {where}",
            "models fitted to the other segments of the same log",
            "fit.quality; better, errors on another log: fit.errors(log), feasid errors",
        ),
        of_tests,
        (
            sentence,
            "the diagnosis, within what these data can show",
            "feasid.diagnose(log, robot), feasid diagnose",
        ),
        (
            count_precise(fit),
            "the noise that the residual shows, and the prior; assumes the model's form",
            "fit.base_table, fit.covariance",
        ),
    ]
    return [dict(zip(("claim", "by", "check"), c, strict=True)) for c in claims if c]


def _simulation(simulation: Simulation | str) -> dict[str, Any] | None:
    """Errors of simulated windows, or why there are none; null where nobody asked."""
    if isinstance(simulation, str):
        return {"reason": simulation} if simulation else None
    table = simulation.table.reset_index(level="horizon")
    return {
        "verdict": simulation.verdict,
        "windows": simulation.windows,
        "closed_loop": simulation.closed_loop,
        "reference": simulation.reference,
        "table": _table_to_data(table),
    }


def _table_to_data(frame: pd.DataFrame) -> dict[str, Any]:
    return {
        "index": frame.index.name,
        "columns": [str(c) for c in frame.columns],
        "rows": [[str(name), *row] for name, row in zip(frame.index, frame.to_numpy().tolist(),
                                                        strict=True)],
    }  # fmt: skip


def _log_curves(
    fit: FittedModel, tests: Sequence[Source], fitted: Sequence[Source]
) -> list[dict[str, Any]]:
    """Measured and predicted torques of every log that has samples; reduced data have none.

    None either where a joint's torque was not measured.
    """
    logs = [("fitted log", log) for log in fitted] + [("test log, not fitted", x) for x in tests]
    drawn = bool(measured_rows(fit.reduced).all())
    curves = [(caption, log) for caption, log in logs if drawn and isinstance(log, Recording)]
    # Every joint has two curves.
    points = min(MOST, max(FEWEST, POINTS // max(1, 2 * len(curves) * fit.robot.dof)))
    out = []
    for caption, log in curves:
        prediction, joints = PredictedLog.from_fit(fit, log), []
        step = max(1, -(-sum(len(t) for t, _, _ in prediction.compared_torques) // points))
        for k, joint in enumerate(prediction.joints):
            runs = [
                {
                    "t": round_to_digits(t[::step]),
                    "measured": round_to_digits(measured[::step, k]),
                    "predicted": round_to_digits(predicted[::step, k]),
                }
                for t, measured, predicted in prediction.compared_torques
            ]
            joints.append({"joint": joint, "cutoff": prediction.cutoff, "runs": runs})
        out.append({"caption": f"{caption} {Path(log.name).name}".strip(), "joints": joints})
    return out


def round_to_digits(values: Array) -> list[float]:
    """Values rounded to `DIGITS` significant digits of the largest one."""
    top = float(np.abs(values).max(initial=0.0))
    places = DIGITS - 1 - math.floor(math.log10(top)) if top > 0 else 0
    return [float(x) for x in np.round(values, places)]
