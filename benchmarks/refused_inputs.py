"""Calls whose input is refused: what the message has to name, and the call with the subjects.

Refusals of options are in `benchmarks.refused`; tests/options/test_refusals.py makes these calls.
"""

import contextlib
import io
from dataclasses import replace

import numpy as np
import pandas as pd

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.robot.drives import Drive

f = feasid


def doubled(labels):
    """Labels of two levels."""
    return pd.MultiIndex.from_tuples([(label, "x") for label in labels])


def cell(s, column, row, value):
    """The log with one cell changed."""
    log = s.log.astype({column: object}) if isinstance(value, str) else s.log.copy()
    log.loc[row, column] = value
    return log


def fitted(s, log=None, **options):
    return f.fit(s.log if log is None else log, s.robot, **options)


def moving(s, **options):
    """The design of a small motion."""
    given = {"harmonics": 2, "velocity": 2.0, "acceleration": 5.0, "rounds": 1, "starts": 1}
    return f.excite(s.full, 2.0, **given | {"position": 1.0, "collision": False} | options)


def online(s, **options):
    return f.OnlineFit(s.full, 200.0, **options)


def fed(s, *signals):
    """An online fit that has taken one sample, and then these."""
    fit = online(s)
    fit.update(np.zeros(s.full.dof), np.zeros(s.full.dof))
    fit.update(*signals)


def dh(**changes):
    """Two joints, of which the second has other entries."""
    rows = [{"alpha": 0, "a": 1, "d": 0, "theta": 0}, {"alpha": 0, "a": 1, "d": 0, "theta": 0}]
    return f.Robot.from_dh([rows[0], rows[1] | changes])


def drive(symbols=("Ia", "fv"), coupling=None, **more):
    return Drive("d", {"shoulder": 1.0} if coupling is None else coupling, symbols, **more)


def coupled(s, *pairs):
    """The arm with joints that follow others."""
    return replace(s.robot, couplings=tuple(f.Coupling(j, c) for j, c in pairs))


def loop(second, kind="connect"):
    return f.Loop("l", "a", second, np.zeros(3), np.zeros(3), kind=kind)


def wrench(s, channels=("a",), **options):
    return f.payload_from_wrench(s.log, s.full, channels=channels, **options)


def command(words):
    """A call of a command line with `arm.urdf` and `log.csv`; its error is what it prints."""

    def run(s):
        heard = io.StringIO()
        with contextlib.chdir(s.folder), contextlib.redirect_stderr(heard):
            status = main(words.split())
        if status == REFUSED:
            raise InputError(heard.getvalue())

    return run


REFUSED = 2  #: Exit status of a command that refuses its input.


def counted(reduced):
    """Reduced data that count rows by integers."""
    strata = tuple(replace(x, counts=x.counts.astype(int)) for x in reduced.strata)
    return replace(reduced, strata=strata)


def far_store(s):
    """A store with a record of a day beyond the calendar."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    folder = s.new(".store") / "a"
    folder.mkdir(parents=True)
    day = pa.array([10**7], pa.int32()).cast(pa.date32())
    row = {"robot": ["a"], "day": day, "log": ["l"], "samples": [1], "seconds": [1.0]}
    write_table(pa.table(row), folder / "2026-11-29_0001_0.parquet")
    return f.LogStore(folder.parent, s.full)


EYE = np.eye(3)
NAN = np.nan

LOGS = [
    ("both have t = 0 s .* pass rate= ", lambda s: fitted(s, s.log.assign(t=1.0))),
    ("2 levels of names: join", lambda s: fitted(s, s.log.set_axis(doubled(s.log), axis=1))),
    ("after trimming .* and delay=1e.06 s; record", lambda s: fitted(s, delay=1e6)),
    ("and exclude= of 160 of 160 rows; record", lambda s: fitted(s, exclude=[(-1, 100)])),
    (r"exclude has \(5, 1\), which ends before", lambda s: fitted(s, exclude=[(5, 1)])),
    ("exclude names the column 'bad'", lambda s: fitted(s, exclude="bad")),
    ("a mask of 160 rows or intervals", lambda s: fitted(s, exclude=[True, False])),
    ("decimate=9 has no effect without filtering='signals' .h", lambda s: fitted(s, decimate=9)),
    ("not .*0.* of shape .3, 3", lambda s: fitted(s, transmission=np.zeros((3, 3)))),
    ("skipped: q_slide", lambda s: f.fit({"t": [0, 1, 2], "q_slide": [1, 2]}, s.robot)),
    ("not a value of type DataFrame", lambda s: f.fit(s.robot, s.log)),
    ("the log has no rows", lambda s: fitted(s, s.log[:0])),
    ("joint 'slide' has no position column 'q_slide'", lambda s: fitted(
        s, s.log.drop(columns=["q_slide"]))),
    ("joint 'slide' has no columns", lambda s: fitted(
        s, s.log.drop(columns=["q_slide", "tau_slide", "dq_slide", "ddq_slide"]))),
    ("column 'q_slide' .* row 7: 'x", lambda s: fitted(s, cell(s, "q_slide", 7, "x"))),
    ("column 'q_slide' .* 1e\\+60 in row 7", lambda s: fitted(s, cell(s, "q_slide", 7, 1e60))),
    ("column 'q_slide' .*row 7: empty", lambda s: fitted(s, cell(s, "q_slide", 7, NAN))),
    ("column 'q_slide' has dtype bool", lambda s: fitted(s, s.log.assign(q_slide=True))),
    ("column 'q_slide' has dtype complex", lambda s: fitted(s, s.log.assign(q_slide=1j))),
    ("'q_slide' occurs twice", lambda s: fitted(s, pd.concat([s.log, s.log["q_slide"]], axis=1))),
    ("column 't' is used for two", lambda s: fitted(s, columns={"q_slide": "t"})),
    ("key 'q_slid', .*did you mean 'q_slide'", lambda s: fitted(s, columns={"q_slid": "t"})),
    ("maps 'q_slide' to 'w', which", lambda s: fitted(s, columns={"q_slide": "w"})),
    ("columns.'q'. must be a pattern", lambda s: fitted(s, columns={"q": "w"})),
    ("columns.'q'. is 'w{}', but", lambda s: fitted(s, columns={"q": "w{}"})),
    ("'temperature_slid' is called as a", lambda s: fitted(s, s.log.assign(temperature_slid=30))),
    ("'slide' .* motor, theta_slide", lambda s: fitted(s, elastic=["slide"])),
    ("'slide' is said to be passive.*drop the column", lambda s: fitted(s, passive=["slide"])),
    ("offsets names 'elbow'", lambda s: fitted(s, offsets={"elbow": 0.1})),
    ("unknown unit 'grad' for 'q'", lambda s: fitted(s, units={"q": "grad"})),
    ("factor of 'q' in units", lambda s: fitted(s, units={"q": 0.0})),
    ("units has the key 'w'", lambda s: fitted(s, units={"w": "deg"})),
    ("row 80 .* the clock restarts", lambda s: fitted(s, pd.concat([s.log[80:], s.log[:80]]))),
    ("row 2 .* sort=True", lambda s: fitted(s, s.log.iloc[[0, 2, 1, *range(3, 160)]])),
    ("column 't' .* row 7: 'noon'", lambda s: fitted(s, cell(s, "t", 7, "noon"))),
    ("not finite in 1 row.*first row 7", lambda s: fitted(s, cell(s, "t", 7, NAN))),
    ("column 'run' has no run in row 0", lambda s: fitted(s, s.log.assign(run=None))),
    ("rate of 5 Hz is below twice", lambda s: fitted(
        s, s.log[["q_" + j for j in s.robot.joints] + ["tau_" + j for j in s.robot.joints]],
        rate=5.0)),
    ("cut-off must lie between 0 and half .* 900.0 Hz", lambda s: fitted(s, cutoff=900.0)),
    ("cutoff must be a frequency", lambda s: fitted(s, cutoff=False, filtering="equations")),
    ("reduced data hold no samples", lambda s: f.diagnose([s.log, s.reduced], s.full)),
    ("log 2 is in log 1 already", lambda s: fitted(s, [s.log, s.log])),
    ("there is no log", lambda s: fitted(s, [])),
    ("every torque of the log is zero", lambda s: fitted(
        s, s.log.assign(**{f"tau_{j}": 0.0 for j in s.robot.joints}))),
    ("'friction' has no effect with base=|friction has no effect with base=", lambda s: f.reduce(
        s.log, s.robot, base=s.base, friction=())),
    ("belong to different robots", lambda s: s.reduced + f.reduce(s.log, s.robot, friction=())),
    ("one of these reduced data has filtered equations", lambda s: s.reduced
     + s.reduced.compact()),
    ("have no slopes of torques", lambda s: s.reduced.compact().with_shifted_torques(0.1)),
    ("counts of row 0 is damaged", lambda s: f.Reduced.from_bytes(counted(s.reduced).to_bytes())),
    ("is not a file of reduced data", lambda s: f.Reduced.load(s.path)),
]  # fmt: skip
"""Logs: rows, columns, times, units, and data that were reduced."""

ROBOTS = [
    ("not from ''", lambda s: f.load_robot("")),
    ("or robot.with_values", lambda s: f.simulate(s.robot, s.log)),
    ("every joint is passive", lambda s: s.robot.with_passive_joints(s.robot.joints)),
    ("joint 'slide' is passive, elastic", lambda s: s.robot.with_passive_joints(["slide"])
     .with_elastic_joints(["slide"])),
    ("joint 'slide' is not elastic", lambda s: s.robot.with_torque_sensors(["slide"])),
    ("joint 'slide' has no motor", lambda s: f.ComputedTorque(
        s.full.with_passive_joints(["slide"]))),
    ("locking joint '.*' leaves no moving", lambda s: s.robot.locked(
        dict.fromkeys(s.robot.joints, 0.0))),
    ("unknown friction term 'dry'", lambda s: s.robot.with_joint_terms(("dry",))),
    ("load-dependent friction needs inertial", lambda s: f.Robot.from_dh(
        [(0, 1, 0, 0)] * 2).with_joint_terms(("load",))),
    ("no moving body or link 'uper'", lambda s: f.payload_from_wrench(
        s.log, s.full, body="uper")),
    ("there is no joint 'slde'", lambda s: coupled(s, ("slde", {"shoulder": 1.0}))),
    ("'slide' is coupled twice", lambda s: coupled(
        s, ("slide", {"shoulder": 1.0}), ("slide", {"wheel_joint": 1.0}))),
    ("couplings form a circle: .*slide", lambda s: coupled(
        s, ("slide", {"shoulder": 1.0}), ("shoulder", {"slide": 1.0}))),
    ("every joint is held or coupled", lambda s: coupled(
        s, *((j, {}) for j in s.robot.joints))),
    ("loop 'l' joins 'a' with itself", lambda s: loop("a")),
    ("loop 'l' is 'glue'", lambda s: loop("b", "glue")),
    ("'d' needs some of", lambda s: drive(())),
    ("'d' has a symbol twice", lambda s: drive(("fv", "fv"))),
    ("'d' needs finite non-zero factors", lambda s: drive(coupling={})),
    ("'d': spring_range must increase", lambda s: drive(("k",), spring_range=(1.0, 0.0))),
    ("'d': ripple must give the periods", lambda s: drive(("rs", "rc"))),
    ("'d' has .'p1'., but no such feature", lambda s: drive(("p1",))),
    ("'d' has no feature 'p1'; it has none", lambda s: drive().feature("p1")),
    ("name must be a non-empty string, not ''", lambda s: f.Body("", None)),
    ("rotation of .* is not a rotation matrix", lambda s: f.Body("a", None, rotation=2 * EYE)),
    ("motion subspace of body 'a' needs 1 to 6", lambda s: f.Body(
        "a", None, motion=np.zeros((6, 1)))),
    ("body 'a' is massless, but has", lambda s: f.Body(
        "a", None, massless=True, inertial=np.ones(10))),
    ("DH row 2: unknown entry 'phi'", lambda s: dh(phi=1)),
    ("DH row 2: a = nan is not a finite", lambda s: dh(a=NAN)),
    ("DH row 2: joint type 'ball'", lambda s: dh(type="ball")),
    ("DH row 1 has 2 entries", lambda s: f.Robot.from_dh([(0, 1)])),
    ("'craig' is not standard or modified", lambda s: f.Robot.from_dh(
        [(0, 1, 0, 0)], convention="craig")),
    ("1 DH rows but 2 names", lambda s: f.Robot.from_dh([(0, 1, 0, 0)], names=["a", "b"])),
    ("bodies=True is for files: robots and fits", lambda s: f.check(s.full, bodies=True)),
    ("bodies=True is for files: robots are", lambda s: f.correct(s.full, bodies=True)),
    ("compare takes two robots or two files", lambda s: f.compare(s.full, s.path)),
    ("tolerance 2.* must lie between", lambda s: f.compare(s.full, s.full, tolerance=2.0)),
    ('needs weight=, a matrix', lambda s: f.correct(s.full, metric="weighted")),
    ("weight must be finite with", lambda s: f.correct(
        s.full, metric="weighted", weight=np.ones((2, 2)))),
    ("exists; pass overwrite=True", lambda s: f.write(s.full, s.path)),
    ("a folder, expected a file", lambda s: f.load_robot(s.folder)),
    ("no folder .*none", lambda s: f.write(s.full, s.folder / "none" / "a.urdf")),
    ("no such file.*did you mean .*arm.urdf", lambda s: f.load_robot(s.folder / "arn.urdf")),
]  # fmt: skip
"""Robots: bodies, drives, couplings, files."""

PARAMETERS = [
    ("upper.m cannot hold in any", lambda s: fitted(s, known={"upper.m": -1}, diagnose=False)),
    ("data are of 22 base .* fit of 23", lambda s: s.fit.errors_of(f.reduce(s.log, s.terms))),
    ("base= is missing", lambda s: f.check(s.log)),
    ("known .* is 2.0, but also 1.0", lambda s: fitted(
        s, known={"upper.m": 1.0, ("upper", "m"): 2.0})),
    ("no inertial parameter of a body .did you mean 'upper.m'", lambda s: fitted(
        s, known={"upper.mass": (1.0, 0.1)})),
    ("upper.m' = .0, 0.1.*a mass a value above 0", lambda s: fitted(
        s, known={"upper.m": (0.0, 0.1)})),
    ("was weighed twice", lambda s: fitted(
        s, known={"upper.m": (1.0, 0.1), ("upper", "m"): (1.0, 0.1)})),
    ("upper.m .*is fixed by other known, tied or zero values", lambda s: fitted(
        s, known={"upper": [*[np.nan] * 9, 1.0], "upper.m": (1.0, 0.1)})),
    ("upper.ly .*is fixed by other known, tied or zero values", lambda s: fitted(
        s, known={"upper.ly": (0.0, 0.1)}, mirrored=[("upper", "upper", "y")])),
    ("was weighed for the prior, and would count twice", lambda s: fitted(
        s, known={"upper.m": (1.0, 0.1)}, prior=f.GaussianPrior.of(
            fitted(s, known={"upper.m": (1.0, 0.1)}, diagnose=False)))),
    ("mass_sums 'both' names a body twice", lambda s: f.check(
        s.full, mass_sums={"both": (["upper", "upper"], 0, 9)})),
    ("com cylinder of upper", lambda s: f.check(
        s.full, com_cylinder={"upper": ([0, 0, 0], [0, 0, 0], 1.0)})),
    ("com hull of upper has no inside", lambda s: f.check(
        s.full, com_hull={"upper": np.zeros((4, 3))})),
    ("has no inside: its semi-axes", lambda s: f.check(
        s.full, com_ellipsoid={"upper": ([0, 0, 0], [0, 1, 1])})),
    ("box of the centre .* 'upper'.* is empty", lambda s: f.check(
        s.full, com_box={"upper": ([1, 1, 1], [0, 0, 0])})),
    ("bound .* lower 9.* is not below", lambda s: f.check(
        s.full, linear={"b": ({"upper.m": 1.0}, 9.0, 1.0)})),
    ("bound 'b' names no parameter", lambda s: f.check(s.full, linear={"b": ({}, 0.0, 1.0)})),
    ("weights: there is no joint 'elbow'", lambda s: fitted(s, weights={"elbow": 1.0})),
    ("weights must be 3 positive numbers", lambda s: fitted(s, weights=[1.0, -1.0, 1.0])),
    ("reference must be ten finite", lambda s: fitted(s, reference=np.ones(5))),
    ("only a fit with a prior", lambda s: f.GaussianPrior.of(s.full)),
    ("no parameter 'uper.m'.*did you mean 'upper.m'", lambda s: s.fit.range("uper.m")),
    ("lower and an upper end, not 'top'", lambda s: s.range.certificate("top")),
    ("order 'right' is not known", lambda s: f.base_parameters(s.robot, order="right")),
    ("robust weights need: give block=", lambda s: fitted(s, robust="huber", block=60.0)),
    ("a block of 0.001 s is shorter", lambda s: fitted(s, robust="huber", block=0.001)),
    ("is no certificate", lambda s: f.Certificate.load(s.path)),
]  # fmt: skip
"""Parameters: bounds, priors, weights, ranges."""

USES = [
    ("loaded: the log has no column", lambda s: f.payload(s.log[["t"]], s.log, s.robot)),
    ("unloaded: the log has no column", lambda s: f.payload(s.log, s.log[["t"]], s.robot)),
    ("payload has no option 'cutof'", lambda s: f.payload(s.log, s.log, s.robot, cutof=1)),
    ("did you mean 'kuka'", lambda s: s.loaded.to("kukka")),
    ("six columns, forces then moments; .'a'", wrench),
    ("rotation must be a rotation matrix", lambda s: wrench(s, rotation=2 * EYE)),
    ("a known load needs both loaded=", lambda s: f.torque_constants(
        s.log, s.full, loaded=s.log)),
    ("window must be .* at most 86400", lambda s: f.replay(s.log, s.full, window=1e6)),
    ("interval must be a number above 0", lambda s: f.replay(s.log, s.full, interval=-1.0)),
    ("at least two rows", lambda s: f.replay(s.log[:1], s.full)),
    ("k must be the place of one of", lambda s: s.replay.line(99)),
    ("window and forgetting are two ways", lambda s: online(s, window=64, forgetting=0.9)),
    ("window of 64 .* multiple of its block, here of 7", lambda s: online(s, window=64, block=7)),
    ("no body 'uper'", lambda s: online(s, carrier="uper")),
    ("cut-offs of 150 and", lambda s: online(s, cutoff=150.0)),
    ("derivative_cutoff of 0.001 Hz at", lambda s: online(s, derivative_cutoff=1e-3)),
    ("base must be of the robot", lambda s: online(s, base=s.base)),
    ("rules that open the gate must be", lambda s: f.AcceptanceRules(r2=0.5)),
    ("needs 3 numbers, one per degree", lambda s: online(s).update(np.zeros(2), np.zeros(3))),
    ("velocities must be given", lambda s: fed(s, *np.zeros((3, 3)))),
    ("time stamps must be given", lambda s: fed(s, *np.zeros((2, 3)), None, 1.0)),
    ("must have as many samples each", lambda s: online(s).extend(
        np.zeros((2, 3)), np.zeros((3, 3)))),
    ("effort must be 3 positive numbers", lambda s: f.ComputedTorque(s.full, effort=[1, 2])),
    ("fit must be a Fit", lambda s: f.ExternalTorque(s.full, 500.0)),
    ("more than .* samples: align them", lambda s: f.ExternalTorque(
        s.believing[0], 500.0, delay=9.0)),
    ("harmonics must be .* at most 1000", lambda s: f.excite(s.full, harmonics=10**6)),
    ("'wheel_joint' have neither velocity nor", lambda s: moving(
        s, velocity=np.inf, acceleration=np.inf)),
    ("velocity has an entry that is NaN", lambda s: moving(s, velocity=[NAN, 1, 1])),
    ("velocity is larger than", lambda s: moving(s, velocity=1e200)),
    ("joint 'wheel_joint' has no position limits", lambda s: moving(s, position=None)),
    ("position limits of joint 'slide', 1 to 0", lambda s: moving(
        s, position={"slide": (1.0, 0.0), "wheel_joint": (-1.0, 1.0)})),
    ("objective 'gain' is not one of", lambda s: moving(s, objective="gain")),
    ("objectives need positive weights", lambda s: moving(s, objective={"gains": -1.0})),
    ("task is for objective=", lambda s: moving(s, task="static")),
    ("prior must be .* positive standard", lambda s: moving(s, prior=[1.0])),
    ("no frame 'elbow'", lambda s: moving(s, workspace={"elbow": ([-1] * 3, [1] * 3)})),
    ("workspace of 'upper' is empty", lambda s: moving(
        s, workspace={"upper": ([1] * 3, [-1] * 3)})),
    ("workspace of 'upper' must be", lambda s: moving(s, workspace={"upper": 3})),
    ("horizon must be a number or a sequence", lambda s: f.simulate(s.full, s.log, horizon="x")),
    ("windows of 99 s do not fit", lambda s: f.simulate(s.full, s.log, horizon=99.0)),
    ("robots must be a mapping from a text", lambda s: f.fit_fleet({1: s.log, 2: s.log}, s.full)),
    ("a fleet has two robots or more", lambda s: f.fit_fleet({"a": s.log}, s.full)),
    ("has no log of 'arm 9'; it has arm 0", lambda s: s.store.logs("arm 9")),
    ("has no log of 'arm 0' since", lambda s: s.store.logs("arm 0", "2999-01-01")),
    ("a store reduces logs itself", lambda s: s.store.add(s.reduced, "arm 0")),
    ("is in the store already", lambda s: s.store.add(s.simulated(11), "arm 0")),
    ("no record of a store: date", lambda s: far_store(s).table),
    ("a table: the log has no column", lambda s: s.store.add(s.log[["t"]], "arm 0")),
]  # fmt: skip
"""What is done with a robot, a log or a fit."""

FLOATING = [
    ("fixed: a motion of its base needs", lambda s: f.floating.floating_motion(s.full, np.zeros(
        (3, 2, 3)), rotation=[EYE] * 2, position=np.zeros((2, 3)), twist=np.zeros((2, 6)),
        acceleration=np.zeros((2, 6)))),
    ("rotation holds matrices that", lambda s: f.floating.floating_motion(s.floating, np.zeros(
        (3, 2, 1)), rotation=[2 * EYE] * 2, position=np.zeros((2, 3)), twist=np.zeros((2, 6)),
        acceleration=np.zeros((2, 6)))),
    ("twist has shape .2, 5., expected .2, 6", lambda s: f.floating.floating_motion(
        s.floating, np.zeros((3, 2, 1)), rotation=[EYE] * 2, position=np.zeros((2, 3)),
        twist=np.zeros((2, 5)), acceleration=np.zeros((2, 6)))),
]  # fmt: skip
"""Robots with floating bases."""

COMMANDS = [(words, command(line)) for words, line in (
    ("--experiment and --for require", "base-parameters arm.urdf --experiment static"),
    ("'stati' is no part of an experiment",
     "base-parameters arm.urdf --experiment stati --for everything"),
    ("static takes no value", "base-parameters arm.urdf --experiment static=1 --for everything"),
    ("neither FILE nor --beta", "check"),
    ("--certificate belongs to --beta", "check arm.urdf --certificate a.json"),
    ("--beta needs --robot|--beta requires --robot", "check arm.urdf --beta log.csv"),
    ("no file matches 'x", "check x*.urdf"),
    ("--strict applies to links", "check --bodies --strict arm.urdf"),
    ("no code 'passiv'; did you mean|no code 'passiv'", "explain passiv"),
    ("--without other.csv: no such log", "fit log.csv --robot arm.urdf --without other.csv"),
    ("--without leaves no log", "fit log.csv --robot arm.urdf --without log.csv"),
    ("requires a written file: name it", "fit log.csv --robot arm.urdf --for mujoco"),
    ("arm.urdf is no folder", "fleet arm.urdf --robot arm.urdf"),
    ("a load needs a log without it", "payload log.csv --robot arm.urdf"),
    ("--calibration needs --sensor",
     "payload log.csv --without log.csv --robot arm.urdf --calibration gain=0"),
    ("--sensor takes one log", "payload log.csv log.csv --robot arm.urdf --sensor a,b,c,d,e,f"),
    ("needs both --loaded", "torque-constants log.csv --robot arm.urdf --loaded log.csv"),
    ("a load is JSON with",
     "torque-constants log.csv --robot arm.urdf --loaded log.csv --load log.csv"),
    ("--option needs NAME=VALUE, not 'a'", "fit log.csv --robot arm.urdf --option a"),
    ("--option cutof: no such option", "fit log.csv --robot arm.urdf --option cutof=3"),
    ("--plot takes a file that ends", "excite arm.urdf --plot a.txt"),
    ("one fit or two, not 3", "report a b c --out a.html"),
    ("log.csv is an input; choose", "reduce log.csv --robot arm.urdf --out log.csv"),
    ("--log needs --robot", "verify a.json --log log.csv"),
)]  # fmt: skip
"""Command lines."""

INPUTS = [*LOGS, *ROBOTS, *PARAMETERS, *USES, *FLOATING, *COMMANDS]
