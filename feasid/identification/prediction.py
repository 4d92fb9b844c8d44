"""Predictions of a fit on other logs, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.core.errors import InputError
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.identification.fitted import FittedModel, raw_error, runs_as_fitted
from feasid.identification.regression.duplicates import find_leakage, find_shared_rows
from feasid.identification.regression.reduce import open_sources, reduce, restrict_terms
from feasid.identification.regression.rows import Rows
from feasid.identification.regression.triangle import Reduced
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording
from feasid.logs.temperature import friction_change
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.assessment.simulation import Simulation
    from feasid.identification.effects.log_differences import LogComparison


def errors_on_log(fit: FittedModel, other: Any, options: Mapping[str, Any]) -> pd.Series[float]:
    """See `Fit.errors`."""
    sources = open_sources(other)
    reduced = reduce(sources, base=fit.base, **options)
    errors = fit.errors_of(reduced)
    errors.attrs["raw"] = raw_error(fit.robot, fit.beta, reduced)
    errors.attrs["predicted"] = fit.predicted_errors(reduced)
    rows = None
    if not robot_floats(fit.base.robot):
        both, measured = (fit.test_options(), options), fit.base.experiment.measured_joints
        rows = find_shared_rows(fit.logs, sources, fit.base.robot, both, measured)
    errors.attrs["leakage"] = rows or find_leakage(fit.reduced, reduced)
    codes = ("no-temperature", *["rest"] * bool(options.get("rest")))  # both leave friction out
    errors.attrs["notes"] = [n for n in reduced.notes if n.code in codes]
    return errors


def reduce_as_fitted(fit: FittedModel, source: Any) -> Reduced:
    """A log of the same sensors, or reduced data, prepared with the fit's terms and delay."""
    if isinstance(source, Reduced) and source.robot is not None:
        part = restrict_terms(source, source.robot, fit.base)
    else:
        part = reduce([source], base=fit.base, **fit.test_options())
    return part.with_shifted_torques(fit.torque_shift) if fit.torque_shift else part


@step("comparing the logs")
def compare_sources(
    fit: FittedModel, sources: Sequence[Any]
) -> tuple[LogComparison | None, list[Note]]:
    """Estimates from each of several logs, and how one differs from the others.

    None for one log, and where several cannot be compared, with a note that says why.
    """
    if len(sources) < 2:
        return None, []
    from feasid.identification.effects.log_differences import MOST_LOGS, compare_logs

    reduced = any(isinstance(s, Reduced) for s in sources)
    reasons = {
        "the robot has a floating base": robot_floats(fit.base.robot),
        "the logs have commands in place of torques": fit.servo is not None,
        "their signals were filtered (filtering='signals')": not fit.reduced.strata,
        "their equations have columns of their own": len(fit.reduced.columns) != fit.base.size,
        f"there are more than {MOST_LOGS}": len(sources) > MOST_LOGS,
        "errors were corrected, and reduced logs hold them": reduced and fit.calibration.confirmed,
    }
    if why := next((text for text, holds in reasons.items() if holds), ""):
        text = f"the {len(sources)} logs were not compared with each other: {why}"
        return None, [Note(text, "not-compared", logs=len(sources))]
    parts = [reduce_as_fitted(fit, source) for source in sources]
    names = [
        (Path(getattr(s, "name", "")).name or (s.sources[0] if getattr(s, "sources", ()) else ""))
        or f"log {k}"
        for k, s in enumerate(sources, start=1)
    ]
    compared = compare_logs(names, parts, fit.base, fit.delta, lambda k: _rows_of(fit, sources[k]))
    return compared, compared.notes


def _rows_of(fit: FittedModel, source: Any) -> Rows | None:
    """A log's equations as the fit has them; None where they are not in memory."""
    cutoff = fit.reduced.cutoff
    if not isinstance(source, Recording) or source.streamed or not cutoff:
        return None
    # Copies: what is formed of them goes with them, log by log.
    runs = [replace(run) for run in runs_as_fitted(fit, source)]
    measured, robot = fit.base.experiment.measured_joints, fit.base.robot
    joints = [j for j, name in enumerate(robot.joints) if measured is None or name in measured]
    rows = Rows(robot, [int(c) for c in fit.base.independent], cutoff, runs, joints)
    # A change of the rows, which are this function's own; torques of the fit are shifted alike.
    rows.torque = rows.torque + fit.torque_shift * rows.slope
    return rows


def predict_torques(fit: FittedModel, log: Any, options: Mapping[str, Any]) -> pd.DataFrame:
    """See `Fit.predict`."""
    import pandas as pd

    recording = Recording.from_source(log)
    if options.get("contacts"):
        raise InputError(
            "predict returns the torques of motors and contacts together: leave contacts out "
            "(contacts=None) and subtract feasid.floating.contact_torques",
            option="contacts",
        )
    motion = recording.motion(fit.robot, torque=False, **options)
    labels = recording.table(fit.robot, options.get("topic")).index
    law = options.get("friction_per_kelvin") or {}
    torques = pd.concat(
        pd.DataFrame(
            inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
            + friction_change(run, law, motion.coordinates),
            index=labels[run.rows],
            columns=[f"tau_{c}" for c in motion.coordinates],
        )
        for run in motion.runs
    )
    torques.attrs["notes"] = [n for n in motion.notes if n.code == "no-temperature"]
    return torques


def simulate_fit(
    fit: FittedModel,
    log: Any,
    horizon: Sequence[float] | float,
    robot: Robot | str | Path | None,
    drive: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Simulation:
    """See `Fit.simulate`; `drive` has its command, kp and kd."""
    from feasid.identification.assessment.simulation import robot_as_described, simulate

    if log is None and not fit.logs:
        raise InputError("reduced data hold no samples to simulate: pass the log")
    servo = None if fit.servo is None else fit.servo.servo
    has_gains = drive["kp"] is not None or drive["kd"] is not None
    if not has_gains and servo is not None and servo.has_only_gain_and_damping:
        drive = {"command": "position", "kp": servo.gains, "kd": None}
        # A servo does not act before its command: an estimate below zero is noise.
        options = {"delay": max(servo.delay, 0.0), **options}
    return simulate(
        fit.robot if robot is None else robot,
        fit.logs[0] if log is None else log,
        fitted=fit.robot,
        reference=robot_as_described(fit.base, fit.description, fit.reduced),
        horizon=horizon,
        name="the fit" if robot is None else "",
        **drive,
        **{**fit.test_options(), **options},
    )
