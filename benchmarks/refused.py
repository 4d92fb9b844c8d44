"""Calls that are refused for an option, one for each place of the package that refuses one.

`python -m benchmarks.refusals` finds the places; tests/options/test_refusals.py makes the calls.
"""

import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import cvxpy as cp
import numpy as np
import pandas as pd

import feasid
from benchmarks.public_calls import Subjects
from feasid.cli.fleet import run_store
from feasid.options.complete import option_table
from feasid.options.tables import FitOptions
from feasid.robot.formats.write import Extras


class Many(Subjects):
    """What refusals need besides."""

    def __init__(self, folder):
        super().__init__(folder)
        long = self.simulated(3, samples=2400)
        positions = {
            f"cmd_{joint}": long[f"q_{joint}"] + 0.01 * long[f"tau_{joint}"]
            for joint in self.robot.joints
        }
        self.commands = long[[name for name in long if not name.startswith("tau_")]].assign(
            **positions
        )
        self.one = self.log.drop(columns=["tau_shoulder", "tau_wheel_joint"])
        pose = {f"base_{axis}": 0.0 for axis in "xyz"} | {
            f"base_q{a}": float(a == "w") for a in "xyzw"
        }
        self.afloat = pd.DataFrame(
            {"t": np.arange(400) * 0.005, "q_leg": 0.0, "tau_leg": 1.0, **pose}
        )
        empty = '<robot name="r"><link name="a"/></robot>'
        (folder / "empty.urdf").write_text(empty)

    def fit_commands(self, **options):
        return feasid.fit(self.commands, self.full, command="position", **options)

    def fit_log(self, **options):
        return feasid.fit(self.log, self.robot, **options)

    def gains(self, **more):
        """Of a servo of every joint."""
        return {"kp": dict.fromkeys(self.full.joints, 1.0), **more}

    def observer_of(self, **options):
        return feasid.ExternalTorque(self.believing[0], 500.0, backend="python", **options)

    def constrained(self, rule, **options):
        return self.fit_log(constraints=rule, diagnose=False, candidates=(), **options)

    def arguments(self, **given):
        """Of the command "store add"."""
        other = dict.fromkeys(("day", "compact", "since", "report", "save"))
        return Namespace(action="add", **{"name": "a", "logs": ["a.csv"], **other, **given})

    @property
    def coupled(self):
        return replace(self.robot, couplings=(feasid.Coupling("slide", {"shoulder": 1.0}),))


WEIGHED = {"upper.m": (1.0, 0.1)}


def near(p):
    return [cp.square(p["upper", "m"] - 1.2) <= 1e-3]


def in_cone(p):
    return [cp.SOC(p["rod", "m"], cp.hstack([p["rod", "lx"]]))]


class Client:
    """Has the name of Dask's."""


POOL, ODD = ThreadPoolExecutor(1), Extras(extensions=("mujoco2",))
WEIGHT = {"weight": (1.0, 1.0, 1.0)}
f = feasid

CASES = [
    ("false_alarms", lambda s: s.observer_of(false_alarms=0)),
    ("false_alarms", lambda s: s.observer_of(false_alarms="often")),
    ("false_alarms", lambda s: s.observer_of(false_alarms=1e12)),
    ("objective", lambda s: f.excite(s.full, objective={"gains": 1, "prediction": 1})),
    ("prior", lambda s: f.fit_fleet({"a": s.log, "b": s.log}, s.full, prior=None)),
    ("prior", lambda s: s.fit_log(prior="descripton")),
    ("known", lambda s: f.fit_fleet({"a": s.log, "b": s.log}, s.full, known=WEIGHED)),
    ("known", lambda s: s.fit_log(known={"upper.m": (1.0, 0.0)})),
    ("known", lambda s: s.fit_log(known=WEIGHED, prior=None)),
    ("known", lambda s: f.check(s.full, known=WEIGHED)),
    ("known", lambda s: s.fit_commands(known=WEIGHED)),
    ("constraints", lambda s: replace(s.fleet, options={"constraints": str}).save("a.feasid")),
    ("constraints", lambda s: s.constrained(lambda p: [p["uper", "m"] >= 1])),
    ("constraints", lambda s: s.constrained(lambda p: [cp.Variable() >= 1])),
    ("constraints", lambda s: s.constrained(in_cone)),
    ("robot", lambda s: s.store.add(s.log, "ARM 0")),
    ("day", lambda s: s.store.add(s.log, "arm 0", day="tomorrow")),
    ("mass", lambda s: f.check(s.path, mass={"upper": (1, 2)})),
    ("overwrite", lambda s: f.correct(s.path, overwrite=True)),
    ("out", lambda s: f.correct(s.full, out="a.urdf")),
    ("total_mass", lambda s: f.correct(s.folder / "empty.urdf", total_mass=1)),
    ("total_mass", lambda s: f.correct(s.robot, total_mass=(1, 2))),
    ("total_mass", lambda s: f.correct(s.full, total_mass=(None, 0))),
    ("for_", lambda s: f.correct(s.path, for_="muyoco")),
    ("for_", lambda s: f.write(s.full, s.new(".sdf"), for_="mujoco")),
    ("extensions", lambda s: f.write(s.full, s.new(".urdf"), extras=ODD)),
    ("robot", lambda s: f.payload(s.log, s.fit, s.robot)),
    ("block", lambda s: f.replay(s.log, s.full, online={"block": -3})),
    ("windw", lambda s: f.replay(s.log, s.full, online={"windw": 3})),
    ("name", lambda s: run_store(s.arguments(name=None))),
    ("since", lambda s: run_store(s.arguments(since="2026-11-28"))),
    ("kp", lambda s: f.simulate(s.full, s.commands, command="position", kp={"slide": 1})),
    ("kp", lambda s: f.simulate(s.full, s.commands, command="position", kp=[1, 2])),
    ("kp", lambda s: f.simulate(s.full, s.commands, command="position", kp=-1)),
    ("command", lambda s: f.simulate(s.full, s.log, kp=5)),
    ("horizon", lambda s: f.simulate(s.full, s.log, horizon=())),
    ("calibration", lambda s: s.fit_log(calibration={"zeroes": 0.1})),
    ("elastic", lambda s: s.fit_log(elastic=["sholder"])),
    ("measured", lambda s: f.fit(s.one, s.robot, robust="huber")),
    ("measured", lambda s: f.fit(s.log, s.coupled, measured=["shoulder"])),
    ("filtering", lambda s: s.fit_log(cutoff=False).error_law(30.0)),
    ("gain", lambda s: s.believing[1].error_law(99.0)),
    ("contacts", lambda s: s.fit.predict(s.log, contacts={"foot": "rod"})),
    ("contacts", lambda s: s.fit_log(contacts={"foot": "rod"})),
    ("client", lambda s: f.reduce(s.log, s.robot, executor=POOL, client=Client())),
    ("measured", lambda s: s.fit_commands(measured=["slide"])),
    ("friction_per_kelvin", lambda s: s.fit_commands(friction_per_kelvin={"slide": (1, 0, 20)})),
    ("delay", lambda s: s.fit_commands(delay=0.01)),
    ("servo", lambda s: s.fit_commands(servo=s.gains())),
    ("filtering", lambda s: s.fit_commands(cutoff=False)),
    ("drive_inertia", lambda s: s.fit_commands(drive_inertia=False)),
    ("friction", lambda s: s.fit_commands(friction=("coulomb",))),
    ("cutoff", lambda s: f.fit(s.afloat, s.floating, cutoff=False)),
    ("trim", lambda s: f.fit(s.afloat, s.floating, trim=0.1)),
    ("servo", lambda s: f.fit(s.commands, s.full, servo={"kp": {"slide": 1.0}})),
    ("servo", lambda s: f.fit(s.commands, s.full, servo=s.gains(law="x"))),
    ("cutof", lambda s: s.fit_log(cutof=3)),
    ("decimate", lambda s: s.fit_log(decimate=2)),
    ("trim", lambda s: s.fit_log(trim="x")),
    ("robust", lambda s: s.fit_log(robust="hubber")),
    ("offsets", lambda s: s.fit_log(offsets={"slide": np.inf})),
    ("mass", lambda s: f.check(s.full, feasible=s.set, mass={"upper": (1, 2)})),
    ("feasible", lambda s: f.check(s.floating, feasible=s.set)),
    ("solver", lambda s: s.fit_log(solver="CLARABELL")),
    ("solver", lambda s: s.fit_log(solver="MOSEK")),
    ("load", lambda s: s.fit_commands(loaded=s.commands, load=[0.1] * 9 + [-1.0])),
    ("gains", lambda s: s.fit_commands(gains={"elbow": (1.0, 0.1)})),
    ("moments", lambda s: s.fit_commands(moments=[("elbow", {}, 1.0, 0.1)])),
    ("servo", lambda s: f.simulate(s.full, s.commands, servo=s.gains(terms=WEIGHT))),
    ("mass", lambda s: option_table(FitOptions)["mass"].parse("mass", "upper")),
    ("slack", lambda s: s.constrained(near, prior=None, slack=0.5)),
    ("offset_origin", lambda s: s.fit.write("a.urdf", offset_origin={"elbow": "sensor"})),
    ("test", lambda s: s.fit.summary(test=pd.Series({"a": 1.0}))),
    ("equal", lambda s: s.fit_log(equal=[("rod", "rod")])),
]  # fmt: skip
"""The option that a call with the subjects is refused for, and the call."""
