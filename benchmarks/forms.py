"""One log in many forms: each gives the same fit, or a refusal whose remedy, run, gives it.

    PYTHONPATH=.:tests python -m benchmarks.forms

The forms are made from one log with known truth: what carries it (data frames, files, arrays), how
its headers write the units, and what its columns are called. Prints for each form how far its base
parameters are from those of the plain form and from the truth, and ends where one is too far.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
from logs import simulate

import feasid
from feasid.core.errors import LogError
from feasid.robot import inertia

SAME = 4e-3
"""Share of the largest base parameter by which fits of two forms may differ: forms with few digits
lose some."""

TRUE = 2e-2
"""The same against the truth: the log has noise of 1 % of its torques."""

FEW = {"diagnose": False, "candidates": (), "calibration": None, "prior": None}

CONSTANTS = np.array([9.0, 5.0])
"""Torque constants of the two motors [N m/A]."""

COUNTS = 4096
"""Encoder counts of a turn."""

DEGREE = np.pi / 180
JOINTS = ("j1", "j2")


@cache
def case():
    """The arm, its log as arrays, the fit of its plain form and the true base parameters."""
    bodies = [
        feasid.Body("upper", None, joint="j1"),
        feasid.Body("lower", "upper", position=(0.4, 0, 0), joint="j2"),
    ]
    robot = feasid.Robot(bodies, gravity=(0, -9.81, 0))
    terms = robot.with_joint_terms()
    delta = terms.values.copy()
    for columns, mass in zip(terms.inertial_columns, (3.0, 2.0), strict=True):
        shape = np.diag([0.01, 0.05, 0.05])
        delta[columns] = inertia.from_mass_com_inertia(mass, [0.2, 0.02, 0], shape)
    for k in range(len(terms.drives)):
        delta[list(terms.drive_columns(k).values())] = 0.4, 0.8, 0.05
    log = simulate(terms, delta, 3, samples=1200, noise=0.01)
    arrays = {"t": log["t"].to_numpy()}
    arrays |= {k: log[[f"{k}_{j}" for j in JOINTS]].to_numpy() for k in ("q", "tau")}
    fit = feasid.fit(log[["t", *(f"{k}_{j}" for k in ("q", "tau") for j in JOINTS)]], robot, **FEW)
    true = dict(zip(terms.parameter_names, delta, strict=True))
    truth = fit.base.K @ [true.get(name, 0.0) for name in fit.base.robot.parameter_names]
    return robot, arrays, fit, truth


def table(q="q_{}", tau="tau_{}", t="t", *, lengths=(1, 1, 1), joints=JOINTS, digits=None):
    """The log as a data frame, its headers as given, in units of so many SI units."""
    _, log, _, _ = case()
    columns = {t: log["t"] / lengths[2]}
    for pattern, kind, length in ((q, "q", lengths[0]), (tau, "tau", lengths[1])):
        values = log[kind] / np.broadcast_to(length, 2)
        columns |= {pattern.replace("{}", j): values[:, k] for k, j in enumerate(joints)}
    df = pd.DataFrame(columns)
    return df if digits is None else df.round(digits)


def stamps(unit):
    """Times of the log since a day in 2026, in a unit of integers."""
    start = pd.Timestamp("2026-03-01T08:00:00")
    times = start + pd.to_timedelta(np.round(case()[1]["t"] * 1e9), unit="ns")
    return times if unit is None else times.astype(f"datetime64[{unit}]").astype(np.int64)


def lists(keys=("observation.state", "observation.effort"), length=DEGREE):
    """A LeRobot table as pandas holds it: lists in cells, positions in degrees."""
    _, log, _, _ = case()
    q, tau = log["q"] / length, log["tau"]
    rows = len(log["t"])
    return pd.DataFrame(
        {
            keys[0]: [*q.astype(np.float64)],
            "action": [*q.astype(np.float64)],
            keys[1]: [*tau],
            "timestamp": log["t"],
            "episode_index": np.zeros(rows, dtype=int),
            "index": np.arange(rows),
        }
    )


HEADERS = {
    "SI": {},
    "deg in brackets": {"q": "q_{} [deg]", "lengths": (DEGREE, 1, 1)},
    "deg in parentheses": {"q": "q_{} (deg)", "lengths": (DEGREE, 1, 1)},
    "deg after an underscore": {"q": "q_{}_deg", "lengths": (DEGREE, 1, 1)},
    "degree sign": {"q": "q_{} [°]", "lengths": (DEGREE, 1, 1)},
    "rev": {"q": "q_{} [rev]", "lengths": (2 * np.pi, 1, 1)},
    "mrad": {"q": "q_{}[mrad]", "lengths": (1e-3, 1, 1)},
    "mNm": {"tau": "tau_{} [mNm]", "lengths": (1, 1e-3, 1)},
    "Ncm": {"tau": "tau_{} [N cm]", "lengths": (1, 1e-2, 1)},
    "N·m": {"tau": "tau_{} [N·m]"},
    "kgcm": {"tau": "tau_{}_kgcm", "lengths": (1, 0.0980665, 1)},
    "ms": {"t": "t_ms", "lengths": (1, 1, 1e-3)},
    "us": {"t": "time [us]", "lengths": (1, 1, 1e-6)},
    "called time": {"t": "time"},
    "Timestamp": {"t": "Timestamp"},
    "positions by number": {"q": "q{}", "tau": "tau{}", "t": "time", "joints": ("1", "2")},
    "other words": {"q": "position_{}_deg", "tau": "effort_{}", "lengths": (DEGREE, 1, 1)},
    "own words": {"q": "actual_pos_{} [deg]", "tau": "actual_torque_{} [Ncm]", "t": "clock [ms]",
                  "lengths": (DEGREE, 1e-2, 1e-3)},
    "ticks": {"q": "q_{} [ticks]", "lengths": (2 * np.pi / COUNTS, 1, 1)},
    "A": {"tau": "tau_{} [A]", "lengths": (1, CONSTANTS, 1)},
    "mA after an underscore": {"tau": "tau_{}_mA", "lengths": (1, CONSTANTS / 1e3, 1)},
    "current": {"tau": "motor_current_{}", "lengths": (1, CONSTANTS, 1)},
}  # fmt: skip
"""What `table` makes of the log: names of columns and lengths of their units."""


def as_csv(df, folder):
    df.to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def as_parquet(df, folder):
    df.to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def as_npz(df, folder):
    np.savez(folder / "log.npz", **{c: df[c].to_numpy() for c in df})
    return folder / "log.npz"


CARRIERS = {
    "frame": lambda df, _: df, "csv": as_csv, "parquet": as_parquet, "npz": as_npz,
    "dict": lambda df, _: {c: df[c].to_numpy() for c in df},
    "polars": lambda df, _: polars.from_pandas(df),
    "arrow": lambda df, _: pa.Table.from_pandas(df, preserve_index=False),
}  # fmt: skip


def arrays(**changes):
    return {**case()[1], **changes}


def masked(x):
    """An array with two more rows, whose cells are masked and hold nonsense."""
    tail = np.full((2, *x.shape[1:]), 7e7)
    return np.ma.array(np.concatenate([x, tail]), mask=np.concatenate([0 * x, 1 + 0 * tail]))


def units_row(folder):
    df = table(lengths=(DEGREE, 1e-2, 1e-3))
    body = df.to_csv(index=False).split("\n", 1)[1]
    text = f"{','.join(df.columns)}\nms,deg,deg,Ncm,Ncm\n{body}"
    (folder / "log.csv").write_text(text)
    return folder / "log.csv"


def lerobot_file(write):
    def make(folder):
        write(lists(), folder / "episode.parquet")
        return folder / "episode.parquet"

    return make


def matlab_5(folder):
    q = case()[1]["q"] / DEGREE
    scipy.io.savemat(
        folder / "log.mat",
        {"time": case()[1]["t"], "q_deg": q, "tau": case()[1]["tau"], "note": "by hand"},
        do_compression=True,
    )
    return folder / "log.mat"


def hdf5(path, group, order):
    """A file of HDF5: MATLAB's version 7.3 holds matrices with rows and columns exchanged."""
    with h5py.File(path, "w", userblock_size=512) as file:
        place = file.create_group(group) if group else file
        named = {"time": case()[1]["t"][:, None], "q_deg": case()[1]["q"] / DEGREE}
        for name, x in {**named, "tau": case()[1]["tau"]}.items():
            place.create_dataset(name, data=x.T if order == "F" else x, compression="gzip")
        file["elsewhere"] = h5py.ExternalLink("/etc/hostname", "/")
    return path


def lerobot_folder(write):
    """A dataset of version 3: two episodes in one file, described beside it."""

    def make(folder):
        df = lists()
        half = len(df) // 2
        df["episode_index"] = np.r_[np.zeros(half, dtype=int), np.ones(len(df) - half, dtype=int)]
        df.loc[df.index[half:], "timestamp"] -= df["timestamp"].iloc[half]
        (folder / "meta").mkdir()
        (folder / "data" / "chunk-000").mkdir(parents=True)
        names = [f"{j}.pos" for j in JOINTS]
        features = {k: {"names": names} for k in ("observation.state", "action")}
        features["observation.effort"] = {"names": {"motors": names}}
        info = {"codebase_version": "v3.0", "fps": 200, "features": features}
        (folder / "meta" / "info.json").write_text(json.dumps(info))
        write(df, folder / "data" / "chunk-000" / "file-000.parquet")
        return folder

    return make


def fixed_lists(df, path):
    kinds = {c: pa.list_(pa.float64(), 2) for c in df if df[c].dtype == object}
    columns = {c: pa.array([*df[c]], type=kinds.get(c)) for c in df}
    pq.write_table(pa.table(columns), path)


OTHERS = {
    "row of units": units_row,
    "time as text": lambda _: table().assign(t=stamps(None).strftime("%Y-%m-%dT%H:%M:%S.%f")),
    "time as text in a file": lambda f: as_csv(
        table().assign(t=stamps(None).strftime("%Y-%m-%d %H:%M:%S.%f")), f
    ),
    "time of day": lambda _: table().assign(t=stamps(None).strftime("%H:%M:%S.%f")),
    "datetimes": lambda _: table().assign(t=stamps(None)),
    "datetime index": lambda _: table().drop(columns="t").set_index(stamps(None)),
    "datetimes of polars": lambda _: polars.from_pandas(table().assign(t=stamps(None))),
    "ns since 1970": lambda _: table(t="t_ns").assign(t_ns=stamps("ns")),
    "ns since 1970, no unit": lambda _: table().assign(t=stamps("ns")),
    "us since 1970 in a file": lambda f: as_csv(table(t="stamp").assign(stamp=stamps("us")), f),
    "matrices": lambda _: arrays(),
    "matrices with units": lambda _: {
        "t [ms]": case()[1]["t"] * 1e3, "q [deg]": case()[1]["q"] / DEGREE, "tau": case()[1]["tau"]
    },
    "matrices in degrees": lambda _: {
        "time": case()[1]["t"], "q_deg": case()[1]["q"] / DEGREE, "tau_Ncm": case()[1]["tau"] * 100
    },
    "joints in rows": lambda _: arrays(q=case()[1]["q"].T, tau=case()[1]["tau"].T),
    "columns of one": lambda _: arrays(t=case()[1]["t"][:, None]),
    "a tuple": lambda _: tuple(case()[1].values()),
    "a tuple, joints in rows": lambda _: tuple(x.T for x in case()[1].values()),
    "masked": lambda _: {k: masked(x) for k, x in case()[1].items()},
    "padded with NaN": lambda _: pd.concat(
        [table(), pd.DataFrame(np.nan, index=range(9), columns=table().columns)], ignore_index=True
    ),
    "lists in a frame": lambda _: lists(),
    "lists in a file by pandas": lerobot_file(lambda df, path: df.to_parquet(path)),
    "lists of fixed length in a file": lerobot_file(fixed_lists),
    "lists of polars": lambda _: polars.DataFrame(lists().to_dict("list")),
    "lists of Arrow": lambda _: pa.Table.from_pandas(lists()),
    "MATLAB 5": matlab_5,
    "MATLAB 7.3": lambda f: hdf5(f / "log.mat", "", "F"),
    "HDF5": lambda f: hdf5(f / "log.h5", "observations", "C"),
    "LeRobot 3 by pandas": lerobot_folder(lambda df, path: df.to_parquet(path)),
    "LeRobot 3 by pyarrow": lerobot_folder(fixed_lists),
    "torque of LeRobot": lambda _: lists(("observation.state", "observation.torque")),
}  # fmt: skip
"""Forms that are not a table of numbers with other headers."""

FORMS = [(f"{c}: {h}", c, h) for h in HEADERS for c in ("frame", "csv")]
FORMS += [(f"{c}: {h}", c, h) for c in CARRIERS for h in ("SI", "deg in brackets", "own words", "A")
          if c not in ("frame", "csv")]  # fmt: skip
FORMS += [(name, "", name) for name in OTHERS]


def remedies(error, currents):
    """Options that a message prints, as keywords of a fit."""
    options = {}
    for word in ("columns", "units"):
        if match := re.search(rf"{word}=(\{{.*?\}})(?=$|[^'\w}}])", str(error)):
            text = match[1].replace("2 * numpy.pi / 4096", repr(2 * np.pi / COUNTS))
            known = ast.literal_eval(text)
            answers = {"q": "deg", "tau": "Nm", "cmd": "deg"}
            if currents:
                answers |= {f"tau_{j}": float(k) for j, k in zip(JOINTS, CONSTANTS, strict=True)}
            options[word] = {k: answers[k] if v is ... else v for k, v in known.items()}
    return options


def fit_as_advised(source, robot, currents):
    """The fit, after as many refusals as there are remedies printed; currents are never silent."""
    options = {}
    for _ in range(3):
        advised, fit = {}, None
        try:
            fit = feasid.fit(source, robot, **FEW, **options)
        except LogError as error:
            advised = remedies(error, currents)
        else:
            said = [n for n in fit.notes if n.code == "currents"]
            if not said:
                return fit
            advised = remedies(said[0], currents)
        if not advised:
            break
        options = {k: options.get(k, {}) | advised.get(k, {}) for k in {*options, *advised}}
    raise AssertionError(f"no fit with what is advised: {options}, {advised}")


def distances(name, carrier, form, folder):
    """Of base parameters from those of the plain form and from the truth, over the largest."""
    robot, _, plain, truth = case()
    make = CARRIERS[carrier] if carrier else None
    source = make(table(**HEADERS[form]), folder) if make else OTHERS[form](folder)
    currents = form in ("A", "mA after an underscore", "current")
    beta = fit_as_advised(source, robot, currents).beta
    return [np.abs(beta - x).max() / np.abs(x).max() for x in (plain.beta, truth)]


def main():
    """Print the distances of every form."""
    for form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            same, true = distances(*form, Path(folder))
        print(f"{same:9.2g} from the plain form, {true:9.2g} from the truth: {form[0]}", flush=True)
        assert same < SAME
        assert true < TRUE


if __name__ == "__main__":
    main()
