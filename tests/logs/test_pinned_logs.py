"""Logs with many faults give the signals, the findings and the sentences that they gave."""

import numpy as np
import pandas as pd
import pytest
from floating import FOOT, LEVER, floating_log, smooth_log
from logs import arm_log
from pinned import assert_pinned

from feasid.core.errors import FeasidError
from feasid.identification.effects.log_findings import check_columns
from feasid.logs.filters import choose_cutoff
from feasid.logs.floating import Imu
from feasid.logs.recording import Recording
from feasid.logs.units import SPELLINGS, UNITS, standard_unit_spelling

ROWS = 2400
JOINTS = ("shoulder", "slide", "wheel_joint")
SPEEDS = [f"dq_{j}" for j in JOINTS]


def changed(log, column, change, rows=slice(None)):
    """The log with other values in these rows of the columns that begin so."""
    log = log.copy()
    for name in log.columns[log.columns.str.startswith(column)]:
        values = log[name].to_numpy().copy()
        values[rows] = change(values[rows])
        log[name] = values
    return log


def swapped(log, a, b):
    return log.rename(columns={a: b, b: a})


def noisy(size):
    return lambda x: x + size * np.random.default_rng(3).standard_normal(len(x))


def uneven(log):
    own = log.drop(index=[*range(300, 306), 900, *range(1500, 1700)])
    return changed(own, "t", noisy(2e-4)).reset_index(drop=True)


def dropouts(log):
    out = changed(changed(log, "q_", lambda x: np.nan, 400), "tau_", lambda x: np.nan, slice(7, 12))
    return changed(out, "tau_wheel_joint", lambda x: x[0], slice(800, 900))


def repeated(log):
    out = log.copy()
    for name in log.columns.drop("t"):
        out[name] = np.tile(log[name][:600], 4)
    return out


def renamed(log):
    names = {"q": "joint_pos_{}", "dq": "velocity.{}", "tau": "effort[{}]"}
    words = {f"{x}_{j}": y.format(j) for x, y in names.items() for j in JOINTS}
    return log.rename(columns={**words, "t": "timestamp"}).assign(status=3)


def commanded(log):
    """Commands that are held for seven samples, a little ahead, instead of torques."""
    held = (np.arange(ROWS) // 7 * 7 + 3).clip(max=ROWS - 1)
    commands = {f"cmd_{j}": log[f"q_{j}"].to_numpy()[held] for j in JOINTS}
    return log.drop(columns=log.filter(regex="^tau_").columns).assign(**commands)


def held(log):
    return log.iloc[np.arange(ROWS) // 3 * 3].assign(t=log["t"].values)


CASES = {
    "clean": (lambda x: x, {}),
    "no speeds": (lambda x: x.drop(columns=SPEEDS), {}),
    "signals": (lambda x: changed(x, "q_", noisy(1e-4)), {"filtering": "signals"}),
    "noise, no speeds": (
        lambda x: changed(x.drop(columns=SPEEDS), "q_", noisy(3e-4)),
        {"filtering": "signals"},
    ),
    "coarse, no speeds": (
        lambda x: changed(x.drop(columns=SPEEDS), "q_", lambda v: np.round(v, 3)),
        {"filtering": "signals"},
    ),
    "commands": (commanded, {"servo": {"kp": dict.fromkeys(JOINTS, 40.0), "delay": 0.0123}}),
    "cutoff": (lambda x: changed(x, "dq_", noisy(1e-2)), {"cutoff": 7.0}),
    "degrees": (lambda x: changed(x, "q_", np.degrees), {}),
    "units": (lambda x: changed(x, "q_", np.degrees), {"units": {"q": "deg", "tau": "mNm"}}),
    "milliseconds": (lambda x: changed(x, "t", lambda t: 1e3 * t), {}),
    "uneven": (uneven, {}),
    "order": (lambda x: changed(x, "t", lambda t: t - 0.0175, slice(700, 705)), {"sort": True}),
    "doubled": (lambda x: changed(x, "t", lambda t: t - 0.005, slice(700, 701)), {}),
    "dropouts": (dropouts, {"corrupt": "drop", "nan": "drop-segments", "exclude": [(3.0, 3.7)]}),
    "huge": (lambda x: changed(x, "tau_", lambda v: 1e60, 5), {"corrupt": "drop"}),
    "spikes": (lambda x: changed(x, "q_", lambda v: v + 0.5, slice(300, 2300, 500)), {}),
    "clipped": (lambda x: changed(x, "tau_", lambda v: np.clip(v, -3, 3)), {}),
    "coarse": (lambda x: changed(x, "q_", lambda v: np.round(v, 2)), {}),
    "dead": (lambda x: changed(x, "tau_wheel_joint", lambda v: 0 * v), {}),
    "unsigned": (lambda x: changed(x, "tau_", np.abs), {}),
    "speed sign": (lambda x: changed(x, "dq_shoulder", np.negative), {}),
    "speed unit": (lambda x: changed(x, "dq_", np.degrees), {}),
    "speeds half": (lambda x: changed(x, "dq_wheel_joint", lambda v: 0.5 * v), {}),
    "speeds swapped": (lambda x: swapped(x, "dq_shoulder", "dq_wheel_joint"), {}),
    "turns": (lambda x: changed(x, "q_", lambda v: (v + 0.9) % (2 * np.pi)), {}),
    "repeated": (repeated, {}),
    "renamed": (renamed, {}),
    "names given": (
        renamed,
        {"columns": {"q": "joint_pos_{}", "tau": "effort[{}]", "dq": "velocity.{}"}, "rate": 150},
    ),
    "thinned": (lambda x: x, {"filtering": "signals", "decimate": 3, "trim": 0.4, "rest": 0.2}),
    "unfiltered": (lambda x: x, {"cutoff": False, "filtering": "signals", "offsets": {"slide": 1}}),
    "raw torque": (lambda x: x, {"filter_torque": False, "filtering": "signals", "cutoff": 9}),
    "runs": (lambda x: x.assign(run=np.repeat(["a", "b", "c"], ROWS // 3)), {}),
    "padding": (lambda x: pd.concat([x, x.iloc[:5] * np.nan], ignore_index=True), {}),
    "rows twice": (lambda x: x.iloc[np.repeat(range(ROWS), [1, 2] * (ROWS // 2))], {}),
    "times twice": (lambda x: changed(x, "t", lambda t: np.repeat(t[::2], 2)), {"rate": 200}),
    "held": (held, {}),
    "held, dropped": (held, {"corrupt": "drop"}),
    "motors": (lambda x: x, {"transmission": [[50, 0, 0], [5, -20, 0], [0, 0, 3]]}),
    "ends": (
        lambda x: changed(x.drop(columns=SPEEDS), "q_", lambda v: v[0], slice(300)),
        {"derivative_cutoff": 12.0, "filtering": "equations", "delay": 0.004},
    ),
}


@pytest.fixture(scope="module")
def case():
    robot, log = arm_log(5, samples=ROWS, noise=0.01)
    return robot, log.drop(columns=log.filter(regex="^ddq_").columns)


def sizes(values):
    """What a signal's rows give: another sample, another sign or another shift shows."""
    x = np.asarray(values, dtype=float).reshape(len(values), -1)
    w = np.sin(np.arange(len(x)))[:, None]
    return np.array([*np.nanmean(np.abs(x), axis=0), *np.nansum(w * x, axis=0), *x[-1]])


@pytest.mark.parametrize("name", CASES)
def test_signals_findings_and_sentences(case, name):
    robot, log = case
    change, options = CASES[name]
    recording, results = Recording.from_source(change(log)), {}
    try:
        motion = recording.motion(robot, **options)
        results["runs"] = [
            {k: sizes(getattr(run, k)) for k in ("t", "q", "dq", "ddq", "tau")}
            for run in motion.runs
        ]
        results |= {"cutoff": motion.cutoff, "notes": [*motion.notes], "rows": motion.rows}
    except FeasidError as error:
        results["error"] = str(error)
    assert_pinned(f"log-{name}", results | {"checks": check_columns(recording, robot, options)})


def test_units_and_cut_offs():
    t, rng = np.arange(4000) / 200, np.random.default_rng(2)
    words = ("°/sec", "N·m", "rad s^-1", "Degrees", "kgf cm", "rev per min", "mm/s²", "MNm", "mNm")
    motion = np.stack([np.sin(2 * np.pi * f * t) / f for f in (0.5, 2.0, 7.0)], axis=1)
    cut_offs = [
        choose_cutoff(motion[:, :k] + noise * rng.standard_normal((4000, k)), 200.0)
        for k in (1, 2, 3) for noise in (0.0, 1e-5, 1e-3, 0.1)
    ]  # fmt: skip
    spelled = {word: standard_unit_spelling(word) for word in (*words, *SPELLINGS)}
    assert_pinned("units", {"units": UNITS, "spelled": spelled, "cut_offs": cut_offs})


@pytest.mark.parametrize("imu", [None, Imu("base_link", position=LEVER)], ids=["pose", "imu"])
def test_logs_of_floating_robots(imu):
    robot, log, _ = smooth_log()
    results = {}
    for name, options in {
        "whole": {"cutoff": 30.0}, "own": {}, "rate": {"rate": 480.0, "cutoff": 12.0}
    }.items():  # fmt: skip
        said = floating_log(log, robot, imu=imu, contacts={"foot": FOOT}, **options)
        results[name] = {"forces": sizes(said.forces), "cutoff": said.cutoff}
        results[name] |= {k: sizes(getattr(said.motion, k)) for k in ("q", "dq", "ddq")}
    given = {"filtering": "equations", "imu": imu, "contacts": {"foot": FOOT}}
    motion = Recording.from_source(log).motion(robot, **given)
    results["notes"] = [*motion.notes]
    options = {k: v for k, v in given.items() if v is not None}
    results["checks"] = check_columns(Recording.from_source(log), robot, options)
    results["runs"] = [[sizes(run.t), sizes(run.tau), sizes(run.ddq)] for run in motion.runs]
    assert_pinned(f"floating-{'pose' if imu is None else 'imu'}", results)
