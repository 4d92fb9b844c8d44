"""Logs to try things on: ``feasid.datasets.load("kinova_gen3")``.

The robot travels with the log, in ``df.attrs["robot"]``, so that ``feasid.fit(df)`` works; a log
from the motors' side also brings options: ``feasid.fit(df, **df.attrs["options"])``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.core.arguments import checked
from feasid.core.errors import InputError, did_you_mean
from feasid.logs.read.formats import read_log
from feasid.robot.drives import Drive
from feasid.robot.formats.load import load_robot

if TYPE_CHECKING:
    import pandas as pd

HERE = Path(__file__).parent

CHECKOUT = HERE.parents[1] / "datasets"
"""Datasets whose licence keeps them out of the wheel are in a checkout of the repository: around
this file, or around the working directory where the package is installed elsewhere."""


@dataclass(frozen=True)
class Recorded:
    """A dataset of log files and a robot description."""

    folder: Path
    logs: tuple[str, ...]  #: Files within the folder; several become runs.
    robot: str  #: File within the folder.
    origin: str
    licence: str
    #: Joints that were not logged, held at this position.
    lock: dict[str, float] = field(default_factory=dict)
    couplings: tuple[Drive, ...] = ()  #: Motors that move several joints.
    #: How the log is to be prepared; kept in ``df.attrs["options"]``.
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> pd.DataFrame:
        """Read the log and its robot."""
        working = Path.cwd()
        checkouts = (
            place / "datasets" / self.folder.name
            for place in (working, *working.parents)
            if (place / "feasid" / "datasets" / "__init__.py").is_file()
        )
        folder = next((each for each in (self.folder, *checkouts) if each.is_dir()), None)
        if folder is None:
            raise InputError(
                f"dataset {self.folder.name!r} ({self.licence}) is not in {self.folder}, since the "
                "installed package has no copy: clone feasid's repository, where it is in "
                f"datasets/{self.folder.name}, and run inside the clone",
                path=str(self.folder),
            )
        paths = [folder / log for log in self.logs]
        df = read_log(paths[0] if len(paths) == 1 else paths)
        robot = load_robot(folder / self.robot, lock=self.lock)
        df.attrs["robot"] = replace(robot, drives=(*robot.drives, *self.couplings))
        df.attrs["options"] = dict(self.options)
        df.attrs["origin"] = self.origin
        df.attrs["licence"] = self.licence
        return df


_TX40_TRANSMISSION = (
    (32.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 32.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 45.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, -48.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 45.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 32.0, 32.0),
)
"""Motor angles over joint angles: the last motor turns with the last two joints."""

DATASETS: dict[str, Callable[..., Any]] = {
    "double_pendulum": Recorded(
        CHECKOUT / "double_pendulum",
        ("run_1.csv.gz", "run_2.csv.gz", "run_3.csv.gz", "run_4.csv.gz"),
        "pendulum.urdf",
        origin="github.com/dfki-ric-underactuated-lab/double_pendulum, commit 1e8544e",
        licence="BSD-3-Clause",
    ),
    "kinova_gen3": Recorded(
        HERE / "kinova_gen3",
        ("run_1.csv.gz", "run_2.csv.gz", "run_3.csv.gz"),
        "gen3.urdf",
        origin="github.com/wissem01chiha/dynamic-identification",
        licence="CC0-1.0; the description BSD-3-Clause",
    ),
    "kuka_lwr4": Recorded(
        CHECKOUT / "kuka_lwr4",
        ("measurement_1.csv.gz", "measurement_2.csv.gz"),
        "kuka_lwr4.urdf",
        origin="github.com/kjyv/FloBaRoID, commit 4e2e5a2",
        licence="LGPL-3.0",
    ),
    "staubli_tx40": Recorded(
        CHECKOUT / "staubli_tx40",
        ("log.csv.gz",),
        "tx40.urdf",
        origin="github.com/thanhndv212/figaroh-examples, commit c0b5c7f0",
        licence="Apache-2.0",
        couplings=(Drive("wrist_motor", {"joint_5": 1.0, "joint_6": 1.0}, ("Ia", "fv", "fc")),),
        options={
            "transmission": _TX40_TRANSMISSION,
            "offsets": {"joint_2": -math.pi / 2, "joint_3": math.pi / 2},
        },
    ),
    "so101": Recorded(
        CHECKOUT / "so101",
        ("multisine.csv.gz",),
        "so101.urdf",
        origin="github.com/isaac-sim2real/sage, commit 4ffd262",
        licence="Apache-2.0",
    ),
    "ur3": Recorded(
        CHECKOUT / "ur3",
        ("id1.csv.gz",),
        "ur3_robot.urdf",
        origin="github.com/aspectum/ur3-force-estimation, commit 36685d8",
        licence="MIT; the description BSD",
    ),
    "ur5": Recorded(
        CHECKOUT / "ur5",
        ("no8.csv.gz", "no9.csv.gz"),
        "ur5_robot.urdf",
        origin="github.com/kkufieta/force_estimate_ur5, commit dce0de8",
        licence="Apache-2.0; the description BSD",
        options={"columns": {"tau": "current_{}"}},
    ),
    "unitree_z1": Recorded(
        CHECKOUT / "unitree_z1",
        ("log.csv.gz",),
        "z1.urdf",
        origin="github.com/iit-DLSLab/simple-robot-identification-isaaclab, commit 5b3aa99",
        licence="BSD-3-Clause",
        lock={"jointGripper": -0.44},
    ),
    # These have a module each, which makes the log.
    "arm": lambda: import_module("feasid.datasets.arm").load(),
    "wam7": lambda: import_module("feasid.datasets.wam").load(),
}


def names() -> tuple[str, ...]:
    """Names that `load` knows."""
    return tuple(DATASETS)


@checked
def load(name: str) -> pd.DataFrame:
    """Load a dataset; its robot is in ``df.attrs["robot"]``.

    Parameters
    ----------
    name : str
        One of `names`: "kinova_gen3", "arm" (simulated, three joints) and "wam7" come with the
        package, the others with a checkout of the repository, inside which you run.

    Raises
    ------
    InputError
        The name is unknown, or the dataset is not installed here.
    """
    if name not in DATASETS:
        raise InputError(
            f"no dataset {name!r}{did_you_mean(name, DATASETS)}: one of {', '.join(DATASETS)}",
            name=name,
        )
    df: pd.DataFrame = DATASETS[name]()
    return df
