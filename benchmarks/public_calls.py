"""A good call of everything public, and bad values to put into it, one argument at a time."""

import datetime
import decimal
import fractions
import inspect
from dataclasses import fields
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
from logs import simulate
from robots import ARM

import feasid
from feasid.datasets import arm

SAMPLES = 160

QUICK = {"diagnose": False, "candidates": (), "prior": None, "plausible": False}
"""Options with which a fit takes little time."""


class Odd:
    """An object whose every conversion fails in its own way."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")

    def __bool__(self):
        raise RuntimeError("no truth")


def bad_values():
    """Values made anew for every case, most of which most arguments cannot be."""
    array = np.array
    numbers = (None, True, False, -1, 0, 2.5, np.nan, np.inf, -np.inf, 1e-300, 1e-320, 1j)
    return {
        **{str(value): value for value in numbers},
        **{str(value): value for value in ((), [], {}, [None], [[1], [2, 3]])}, "1e300": 1e300,
        "-1e300": -1e300, "np.True_": np.True_, "2**63": 2**63, "10**400": 10**400,
        "10**5000": 10**5000, "Decimal": decimal.Decimal("1.5"),
        "Fraction": fractions.Fraction(1, 3), "empty text": "", "word": "nonsense",
        "false": "false", "number as text": "1.5", "control text": "a\x1b[2J\nb", "nul": "a\0b",
        "surrogate": "a\udc80", "long text": "x" * 5000, "bytes": b"bytes",
        "path": Path("/nowhere/at/all"), "folder": Path("."), "set": {"a", "b"},
        "nested": [[[[1.0]]]], "texts": ["a", "b"], "same twice": ["upper", "upper"],
        "mapping": {"nowhere": 1.0}, "mapping of None": {"shoulder": None},
        "mapping by number": {0: 1.0}, "object": object(), "class": dict,
        "function": lambda *_: None, "generator": (x for x in (1, 2)), "range": range(3),
        "Odd": Odd(), "nan array": array([np.nan, 1.0]), "inf array": array([np.inf, 1.0]),
        "complex array": array([1j, 2.0]), "text array": array(["a", "b"]),
        "number texts": array(["1", "2"]), "bool array": array([True, False]),
        "object array": array([None, 1.0]),
        "date array": array(["2020-01-01", "2020-01-02"], "M8[D]"),
        "masked": np.ma.masked_array([1.0, 2.0], [True, False]), "0-d": array(1.0),
        "empty array": np.empty((0, 2)), "long array": np.ones(100), "cube": np.ones((2, 2, 2)),
        "date": datetime.datetime(2020, 1, 1), "Timestamp": pd.Timestamp("2020-01-01"),
        "swapped frame": pd.DataFrame({"slide": [0.1, 0.2], "shoulder": [0.3, 0.4]}),
        "empty frame": pd.DataFrame(),
        "dates frame": pd.DataFrame({"t": pd.date_range("2020", periods=3)}),
        "dict of lists": {"q": [[1.0, 2.0]], "t": ["a"]},
    }  # fmt: skip


def spoilt(good):
    """A good argument changed in one place: what has the right shape and is wrong all the same."""
    if isinstance(good, pd.DataFrame):
        numbers = good.select_dtypes("number").columns[-1:]
        return {"its nan": good.assign(**dict.fromkeys(numbers, np.nan)), "its shorter": good[:-1]}
    if isinstance(good, dict) and good and not {"coefficients", "is"} & set(good):
        return {"its nan": dict.fromkeys(good, np.nan), "its None": dict.fromkeys(good)}
    if isinstance(good, tuple) and good:
        return {"its None": (*good[:-1], None), "its shorter": good[:-1], "its list": [*good]}
    if not isinstance(good, np.ndarray) or good.dtype.kind not in "fi" or not good.size:
        return {}

    def changed(number, kind=float):
        array = np.array(good, kind)
        array.flat[-1] = number
        return array

    return {
        **{f"its {number}": changed(number) for number in (np.nan, np.inf, -1e300, 1e-300)},
        "its complex": changed(1j, complex),
        "its masked": np.ma.masked_array(good, np.arange(good.size).reshape(good.shape) == 0),
        "its None": changed(None, object), "its texts": good.astype(str),
        "its shorter": good[:-1], "its nested": good[None],
    }  # fmt: skip


SMALL_MOTION = {"harmonics": 2, "position": 1.0, "velocity": 2.0, "acceleration": 5.0}
SMALL_MOTION |= {"collision": False}


class Subjects:
    """What public functions work on: a small arm, its log and what was made of them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "arm.urdf").write_text(ARM)
        self.path = folder / "arm.urdf"
        self.robot = feasid.load_robot(self.path)
        self.log = self.simulated(3)
        (folder / "log.csv").write_text(self.log.to_csv(index=False))
        self.n = 0

    def simulated(self, seed, robot=None, samples=SAMPLES):
        robot = (robot or self.robot).with_joint_terms()
        delta = robot.values.copy()
        for columns in robot.inertial_columns:
            if np.isnan(delta[columns]).any():
                delta[columns] = [1e-3, 0, 0, 1e-3, 0, 1e-3, 0, 0, 0, 0.4]
        delta[np.isnan(delta)] = 0.1
        return simulate(robot, delta, seed, samples=samples, noise=0.01)

    def new(self, ending):
        """A path that does not exist yet."""
        self.n += 1
        return self.folder / f"new{self.n}{ending}"

    @cached_property
    def q(self):
        return np.random.default_rng(0).uniform(-0.4, 0.4, (5, self.robot.dof))

    @cached_property
    def full(self):
        """The arm with values of everything."""
        return self.fit.robot

    @cached_property
    def base(self):
        return feasid.base_parameters(self.robot)

    @cached_property
    def fit(self):
        return feasid.fit(self.log, self.robot, **QUICK)

    @property
    def unknowns(self):
        return {"base": self.base, "values": self.base.K[:, 0]}

    @cached_property
    def saved(self):
        path = self.new(".feasid")
        self.fit.save(path)
        return feasid.load(path)

    @cached_property
    def reduced(self):
        return feasid.reduce(self.log, self.robot)

    @cached_property
    def motion(self):
        return feasid.excite(self.robot, 2.0, rounds=1, starts=1, **SMALL_MOTION)

    @cached_property
    def problem(self):
        seen = []

        def keep(problem):
            seen.append(problem)
            return problem.start

        feasid.excite(self.robot, 2.0, optimiser=keep, **SMALL_MOTION)
        return seen[0]

    @cached_property
    def verdict(self):
        return feasid.check(self.full)

    @cached_property
    def drive(self):
        return self.robot.with_joint_terms().drives[0]

    @cached_property
    def online(self):
        return feasid.OnlineFit(self.full, 200.0, window=64)

    @cached_property
    def online_base(self):
        return feasid.OnlineFit(self.full, 200.0).base

    @cached_property
    def range(self):
        return self.fit.range("upper.m")

    @cached_property
    def repair(self):
        return feasid.correct(self.path, out=self.new(".urdf"))

    @cached_property
    def recording(self):
        return feasid.Recording(self.log)

    @cached_property
    def terms(self):
        return self.robot.with_joint_terms()

    @cached_property
    def control(self):
        return feasid.ComputedTorque(self.full)

    feature = feasid.CustomJointTerm("f", lambda q, dq, ddq, load: q)

    @cached_property
    def fleet(self):
        return feasid.fit_fleet({"a": self.log, "b": self.log}, self.full)

    @cached_property
    def store(self):
        store = feasid.LogStore(self.folder / "store", self.full)
        store.add([self.simulated(k) for k in (11, 12)], "arm 0")
        return store

    @cached_property
    def replay(self):
        return feasid.replay(self.log, self.full, window=0.3, interval=0.3)

    @cached_property
    def believing(self):
        """A fit with a prior, of a log long enough to hold out, and what was read back."""
        log = self.simulated(3, samples=4 * SAMPLES)
        fit = feasid.fit(log, self.robot, diagnose=False, calibration=None)
        fit.save(self.folder / "believing.feasid", overwrite=True)
        return fit, feasid.load(self.folder / "believing.feasid")

    @cached_property
    def observer(self):
        return feasid.ExternalTorque(self.believing[0], 500.0, backend="python")

    @cached_property
    def contact(self):
        return self.observer.update(0.0, *np.zeros((3, self.fit.robot.dof)))

    @cached_property
    def samples(self):
        return feasid.sample(self.full, 2)

    @cached_property
    def loaded(self):
        return feasid.payload(self.simulated(5), self.log, self.robot)

    @cached_property
    def sensor(self):
        robot = arm.described()
        return feasid.payload_from_wrench(arm.wrist_log(robot, 0.8, (0.0, 0.0, 0.1)), robot).sensor

    @cached_property
    def set(self):
        return feasid.feasible_set(self.terms, mass={"upper": (0.1, 9.0)})

    @cached_property
    def results(self):
        """A result of every class, by its name, as functions built it."""
        f, robot, log = feasid, self.robot, self.log
        return [
            *(self.base, self.problem, self.fit, self.fleet, self.loaded, self.replay, self.range),
            *(self.contact, self.reduced, self.repair, self.samples, self.motion, self.verdict),
            *(self.set, self.loaded.to("franka", force=True), self.replay.estimates[-1]),
            f.compare(robot, robot), f.correct(self.full), f.diagnose(log, self.full),
            f.Finding("code", "warning", "message", "remedy"), self.fit.ranges(["upper.m"]),
            f.check(self.path), f.simulate(self.full, log, horizon=0.1),
            f.torque_constants(log, self.full), self.sensor,
        ]  # fmt: skip

    @cached_property
    def floating(self):
        """A box that floats."""
        body = np.array([0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0])
        return feasid.Robot(
            (
                feasid.Body("box", None, motion=np.eye(6), inertial=body),
                feasid.Body("leg", "box", inertial=body),
            )
        )


def call(function, /, **given):
    """A function with good arguments."""
    return function, given


def calls(s):
    """Per name: a function that makes the callable, with good arguments."""
    q = s.q
    one = q[0]
    qf = np.zeros((2, 7))
    joints = (np.zeros((2, 1)),) * 3
    eye = np.broadcast_to(np.eye(3), (2, 3, 3))
    three, six = np.zeros((2, 3)), np.zeros((2, 6))
    dh = [(0, 1.0, 0, 0), (0, 1.0, 0, 0)]
    f, r, p, floating = feasid, s.robot, feasid.problems, feasid.floating
    R, beta = np.eye(s.base.size), s.unknowns["values"]
    out = {
        # functions
        "base_parameters": lambda: call(f.base_parameters, robot=r),
        "servo_scale_groups": lambda: call(f.servo_scale_groups, robot=r),
        "check": lambda: call(f.check, subject=s.full),
        "compare": lambda: call(f.compare, a=r, b=r),
        "contact_torques": lambda: call(
            floating.contact_torques, robot=s.floating, q=qf, contacts=[]
        ),
        "correct": lambda: call(f.correct, subject=s.full),
        "diagnose": lambda: call(f.diagnose, log=s.log, robot=s.full),
        "excite": lambda: call(
            f.excite, robot=r, duration=2.0, rounds=0, starts=1, **SMALL_MOTION, time_limit=1.0
        ),
        "feasible_least_squares": lambda: call(
            f.feasible_least_squares,
            R=R,
            rho=beta,
            base=s.base,
            feasible=f.feasible_set(s.base.robot),
        ),
        "feasible_set": lambda: call(f.feasible_set, robot=r),
        "fit": lambda: call(f.fit, data=s.reduced, robot=r, **QUICK),
        "floating_motion": lambda: call(
            floating.floating_motion,
            robot=s.floating,
            joints=joints,
            rotation=eye,
            twist=six,
            acceleration=six,
        ),
        "contact_free_projector": lambda: call(
            floating.contact_free_projector,
            robot=s.floating,
            q=qf,
            contacts=[floating.Contact("box")],
        ),
        "imu_motion": lambda: call(
            floating.imu_motion,
            robot=s.floating,
            joints=joints,
            gyro=three,
            accelerometer=three,
            angular_acceleration=three,
        ),
        "inverse_dynamics": lambda: call(f.inverse_dynamics, robot=s.full, q=q, dq=q, ddq=q),
        "load": lambda: call(f.load, path=s.new(".feasid")),
        "load_robot": lambda: call(f.load_robot, path=s.path),
        "payload": lambda: call(f.payload, loaded=s.log, unloaded=s.reduced, robot=r),
        "payload_from_wrench": lambda: call(f.payload_from_wrench, log=s.log, robot=r),
        "read_log": lambda: call(f.read_log, source=s.folder / "log.csv"),
        "parallelogram": lambda: call(
            f.parallelogram,
            robot=f.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)]),
            shoulder="1",
            elbow="2",
            reach=three,
        ),
        "reduce": lambda: call(f.reduce, data=s.log, robot=r),
        "regressor": lambda: call(f.regressor, robot=r, q=q, dq=q, ddq=q),
        "rotation_matrices": lambda: call(floating.rotation_matrices, quaternion=[[1.0, 0, 0, 0]]),
        "ExternalTorque": lambda: call(
            f.ExternalTorque, fit=s.believing[0], rate=500.0, backend="python"
        ),
        "sample": lambda: call(f.sample, robot=s.full, count=2),
        "set_progress": lambda: call(f.set_progress, show=False),
        "simulate": lambda: call(f.simulate, robot=s.full, log=s.log, horizon=0.1),
        "torque_constants": lambda: call(f.torque_constants, log=s.log, robot=s.full),
        "fit_fleet": lambda: call(f.fit_fleet, robots={"a": s.log, "b": s.log}, robot=s.full),
        "replay": lambda: call(f.replay, log=s.log, robot=s.full, window=0.3, interval=0.3),
        "write": lambda: call(f.write, robot=s.full, path=s.new(".urdf")),
        "export_c": lambda: call(f.export_c, robot=s.full, path=s.new(".c"), routines=["gravity"]),
        "datasets.load": lambda: call(f.datasets.load, name="nonsense"),
        "problems.robot_unknowns": lambda: call(p.robot_unknowns, **s.unknowns),
        # constructors
        "Body": lambda: call(f.Body, name="a", parent=None, inertial=np.arange(10.0)),
        "Certificate": lambda: call(f.Certificate, data=s.verdict.certificate.data),
        "LogStore": lambda: call(f.LogStore, folder=s.folder / "another", robot=s.full),
        "ComputedTorque": lambda: call(f.ComputedTorque, robot=s.full),
        "Contact": lambda: call(floating.Contact, body="box", force=three),
        "Coupling": lambda: call(f.Coupling, joint="slide", factors={"shoulder": 1.0}, offset=0.0),
        "Drive": lambda: call(f.Drive, name="d", coupling={"slide": 1.0}),
        "CustomJointTerm": lambda: call(
            f.CustomJointTerm, name="f", function=lambda q, dq, ddq, load: q
        ),
        "AcceptanceRules": lambda: call(f.AcceptanceRules),
        "GaussianPrior": lambda: call(
            f.GaussianPrior,
            parameters=r.parameter_names,
            mean=np.zeros(r.size),
            matrix=np.eye(r.size),
        ),
        "Imu": lambda: call(floating.Imu, link="box"),
        "Loop": lambda: call(
            f.Loop,
            name="l",
            first="a",
            second="b",
            first_position=np.zeros(3),
            second_position=np.zeros(3),
            kind="connect",
            first_rotation=np.eye(3),
            second_rotation=np.eye(3),
        ),
        "Note": lambda: call(f.Note, text="a"),
        "CompiledDynamics": lambda: call(f.CompiledDynamics, robot=s.full),
        "OnlineFit": lambda: call(f.OnlineFit, robot=s.full, rate=200.0, base=s.online_base),
        "Recording": lambda: call(f.Recording, source=s.log),
        "Robot": lambda: call(f.Robot, bodies=r.bodies),
        "Rotor": lambda: call(f.Rotor, gear=10.0),
        "ContactSensor": lambda: call(floating.ContactSensor, body="box"),
        "Robot.from_dh": lambda: call(f.Robot.from_dh, rows=dh),
        "GaussianPrior.of": lambda: call(f.GaussianPrior.of, fit=s.fit),
        "Certificate.load": lambda: call(f.Certificate.load, path=s.new(".json")),
        "Recording.from_source": lambda: call(f.Recording.from_source, source=s.log),
        "Reduced.load": lambda: call(f.Reduced.load, path=s.new(".reduced")),
        "Reduced.from_samples": lambda: call(
            f.Reduced.from_samples, robot=r, q=q, dq=q, ddq=q, tau=q
        ),
        # methods
        "BaseParameters.explain": lambda: call(
            s.base.explain, name=".".join(r.parameter_names[-1])
        ),
        "BaseParameters.missing_for": lambda: call(s.base.missing_for, use=s.base),
        "BaseParameters.values": lambda: call(s.base.values, parameters=np.zeros(r.size)),
        "Certificate.save": lambda: call(s.verdict.certificate.save, path=s.new(".json")),
        "ComputedTorque.torque": lambda: call(s.control.torque, q=one, dq=one, ddq=one),
        "Drive.factor": lambda: call(s.drive.factor, symbol="fv", q=one, dq=one, ddq=one),
        "Drive.feature": lambda: call(s.drive.feature, symbol="p1"),
        "Drive.needs_load": lambda: call(s.drive.needs_load, symbol="fv"),
        "CustomJointTerm.values": lambda: call(s.feature.values, q=one, dq=one, ddq=one, load=None),
        "ExcitationProblem.barrier": lambda: call(
            s.problem.barrier, z=s.problem.start, weight=1.0, reach=1.0
        ),
        "Fit.errors": lambda: call(s.fit.errors, other=s.log),
        "Fit.errors_of": lambda: call(s.fit.errors_of, reduced=s.reduced),
        "Fit.predict": lambda: call(s.fit.predict, log=s.log),
        "Fit.range": lambda: call(s.fit.range, wanted="upper.m"),
        "Fit.ranges": lambda: call(s.fit.ranges, wanted=["upper.m"]),
        "Fit.test_options": lambda: call(s.fit.test_options, options={"cutoff": 5.0}),
        "Fit.export_c": lambda: call(s.fit.export_c, path=s.new(".c")),
        "Fit.verify": lambda: call(s.fit.verify, path=s.path, client="nonsense"),
        "Fit.write": lambda: call(s.fit.write, path=s.new(".urdf"), force=True),
        "FeasibleSet.without_constraints": lambda: call(
            s.set.without_constraints, names=["mass of upper"]
        ),
        "FeasibleSet.with_user_constraints_of": lambda: call(
            s.set.with_user_constraints_of, other=s.set
        ),
        "FeasibleSet.with_margin": lambda: call(s.set.with_margin, margin=1e-6),
        "Fit.display": lambda: call(s.fit.display),
        "Fit.summary": lambda: call(s.fit.summary),
        "Fit.report": lambda: call(s.fit.report, path=s.new(".html")),
        "Fit.save": lambda: call(s.fit.save, path=s.new(".feasid")),
        "Fit.predicted_errors": lambda: call(s.fit.predicted_errors, reduced=s.reduced),
        "Fit.error_law": lambda: call(s.believing[0].error_law, gain=30.0),
        "Fit.sample": lambda: call(s.believing[0].sample, count=2),
        "Samples.arrays": lambda: call(s.samples.arrays),
        "Samples.write": lambda: call(s.samples.write, folder=s.folder / "drawn"),
        "Fit.simulate": lambda: call(s.fit.simulate, log=s.log, horizon=0.1),
        "ExternalTorque.update": lambda: call(s.observer.update, t=0.0, q=one, dq=one, tau=one),
        "ExternalTorque.export_c": lambda: call(s.observer.export_c, path=s.new(".c")),
        "ContactEstimate.wrench": lambda: call(s.contact.wrench, link="upper"),
        "Payload.to": lambda: call(s.loaded.to, maker="franka", force=True),
        "OnlineFit.restore": lambda: call(s.online.restore, state=s.online.state()),
        "OnlineFit.save": lambda: call(s.online.save, path=s.new(".feasid")),
        "OnlineFit.update": lambda: call(s.online.update, q=one, tau=one),
        "OnlineFit.extend": lambda: call(s.online.extend, q=q, tau=q),
        "Payload.on": lambda: call(s.loaded.on, robot=s.full),
        "Fleet.fit": lambda: call(s.fleet.fit, data=s.log),
        "Fleet.save": lambda: call(s.fleet.save, path=s.new(".feasid")),
        "LogStore.add": lambda: call(s.store.add, data=s.log, robot="arm 1"),
        "LogStore.logs": lambda: call(s.store.logs, robot="arm 0"),
        "LogStore.fit": lambda: call(s.store.fit, robot="arm 0"),
        "LogStore.drift": lambda: call(s.store.drift, robot="arm 0"),
        "Fleet.report": lambda: call(s.fleet.report, path=s.new(".html")),
        "Replay.line": lambda: call(s.replay.line, k=0),
        "Replay.plot": lambda: call(s.replay.plot, path=s.new(".png")),
        "Range.certificate": lambda: call(s.range.certificate, end="lower"),
        "Reduced.residuals": lambda: call(
            s.reduced.residuals, beta=np.zeros(len(s.reduced.columns))
        ),
        "Reduced.save": lambda: call(s.reduced.save, path=s.new(".reduced")),
        "Reduced.triangle": lambda: call(s.reduced.triangle),
        "Reduced.with_notes": lambda: call(s.reduced.with_notes, notes="a"),
        "Reduced.with_shifted_torques": lambda: call(s.reduced.with_shifted_torques, delay=0.001),
        "FileCorrection.write": lambda: call(s.repair.write, path=s.new(".urdf")),
        "Robot.check_parameters": lambda: call(r.check_parameters, parameters=np.zeros(r.size)),
        "Robot.joint_index": lambda: call(r.joint_index, joint="slide"),
        "Robot.locked": lambda: call(r.locked, joints={"slide": 0.1}),
        "Robot.pose": lambda: call(r.pose, positions={"slide": 0.1}),
        "Robot.rotor_columns": lambda: call(r.rotor_columns, body=0),
        "Robot.with_gravity": lambda: call(r.with_gravity, gravity=[0, 0, -9.81]),
        "Robot.with_joint_terms": lambda: call(r.with_joint_terms),
        "Robot.with_loops": lambda: call(r.with_loops, loops=()),
        "Robot.with_transition": lambda: call(r.with_transition, speed=0.1),
        "Robot.with_elastic_joints": lambda: call(r.with_elastic_joints, joints=["shoulder"]),
        "Robot.with_torque_sensors": lambda: call(
            r.with_elastic_joints(["shoulder"]).with_torque_sensors, joints=["shoulder"]
        ),
        "Robot.with_passive_joints": lambda: call(r.with_passive_joints, joints=["shoulder"]),
        "Robot.with_values": lambda: call(r.with_values, parameters=np.zeros(r.size)),
        "Trajectory.at": lambda: call(s.motion.at, t=[0.1]),
        "Trajectory.check_approach": lambda: call(s.motion.check_approach, start=s.motion.q[0]),
        "Trajectory.jerk": lambda: call(s.motion.jerk, t=[0.1]),
        "Trajectory.to_csv": lambda: call(s.motion.to_csv, path=s.new(".csv")),
        "Trajectory.to_frame": lambda: call(s.motion.to_frame),
        "Trajectory.to_ros": lambda: call(s.motion.to_ros, path=s.new(".yaml")),
    }

    def methods(kind, names, subject, given):
        for name in names:
            out[f"{kind}.{name}"] = lambda name=name: (getattr(subject(), name), given())

    at_start = ("gradient", "margins", "objective")
    methods("ExcitationProblem", at_start, lambda: s.problem, lambda: {"z": s.problem.start})
    of_values = ("linear_values", "contains", "contains_strictly", "violations")
    methods("FeasibleSet", of_values, lambda: s.set, lambda: {"delta": s.fit.delta})
    methods("Recording", ("motion", "table"), lambda: s.recording, lambda: {"robot": r})
    methods("Robot", ("coupling", "drive_columns"), lambda: s.terms, lambda: {"drive": 0})
    for kind in ("ComputedTorque", "CompiledDynamics"):
        for names, given in {
            ("gravity", "mass_matrix"): {"q": one},
            ("friction",): {"q": one, "dq": one},
            ("regressor", "inverse_dynamics"): {"q": one, "dq": one, "ddq": one},
            ("forward_dynamics",): {"q": one, "dq": one, "tau": one},
        }.items():
            methods(kind, names, lambda: s.control, given.copy)
        beta_of_control = lambda: {"beta": s.control.base.values(s.full.values)}  # noqa: E731
        methods(kind, ("use",), lambda: s.control, beta_of_control)
    shared = {"p": p.robot_unknowns(**s.unknowns)}
    for name, given in {
        "feasibility_test": {"beta": beta},
        "closest_correction": {"beta": beta},
        "feasible_least_squares": {"R": R, "rho": beta},
    }.items():
        out[f"problems.{name}"] = partial(call, getattr(p, name), **shared, **given)
    for result in s.results:
        out[type(result).__name__] = partial(_built, result)
    return out


def _built(result):
    """A result's class, with the parts of one that a function built."""
    return type(result), {f.name: getattr(result, f.name) for f in fields(result) if f.init}


def public_callables():
    """Every public function, constructor and method with parameters, by name."""
    found = {}
    places = [(feasid, n) for n in feasid.__all__]
    for module, name in [*places, *((feasid.floating, n) for n in feasid.floating.__all__)]:
        item = getattr(module, name)
        if inspect.isclass(item):
            if issubclass(item, Exception):
                continue
            found[name] = item
            for method, member in inspect.getmembers_static(item):
                plain = getattr(member, "__func__", member)
                ours = str(getattr(plain, "__module__", "")).startswith("feasid")
                if method.startswith("_") or not inspect.isfunction(plain) or not ours:
                    continue
                names = [*inspect.signature(plain).parameters]
                if [n for n in names if n not in ("self", "cls")]:
                    found[f"{name}.{method}"] = plain
        elif inspect.isfunction(item):
            found[name] = item
    return found


def parameters(function, given):
    """Names of all parameters, options included."""
    every = inspect.signature(function).parameters
    names = [n for n, p in every.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return [n for n in dict.fromkeys([*names, *given]) if n not in ("self", "cls")]
