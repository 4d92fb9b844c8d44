"""Small robots with hidden parameters, and logs of them with one thing wrong at a time.

Torques come from the true robot at positions and speeds that are known exactly, so that a log of
half a minute costs milliseconds. The description that a fit sees has other masses, centres and
shapes. Whether the dynamics themselves are right is tested elsewhere, against other simulators.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd
from logs import values_for, waves
from mjcf_files import inertial, row
from scipy.spatial.transform import Rotation

import feasid
from benchmarks.simulated import wrong_body
from feasid.applications.loads.wrist import CHANNELS, _wrench_regressor
from feasid.robot import inertia
from feasid.robot.dynamics.floating import frame_jacobian

RATE, SECONDS, TEST_SECONDS = 200.0, 20.0, 10.0
"""Of a log [Hz, s], and the length of the motion that it is judged on."""
SPEED = 1.5
"""Largest joint speed of both motions [rad/s]."""
NOISE = 0.01
"""White noise of a logged torque over the joint's RMS torque."""
STEP = 2 * np.pi / 2**18
"""Of the encoders [rad]."""
DELAY = 0.008
"""Of torques in late logs [s]."""
GAIN = 1.2
"""Factor of the torques of one joint in logs with wrong gains."""
TILT = np.deg2rad(4.0)
"""Of the base in tilted logs [rad]."""
RIPPLE, WAVES = {"rs": 0.6, "rc2": 0.4}, (40.0, 9.0)
"""Amplitudes of the torque that repeats with a joint's position [N m], and its periods per turn."""
HARMONICS, PERIOD = 5, 10.0
FEET = {
    "front": feasid.floating.ContactSensor("base", (0.3, 0.0, -0.3)),
    "left": feasid.floating.ContactSensor("base", (-0.2, 0.25, -0.3)),
    "right": feasid.floating.ContactSensor("base", (-0.2, -0.25, -0.3)),
    "hand": feasid.floating.ContactSensor("l3", (0.0, 0.0, 0.25)),
}
"""Where a floating robot is held: three forces carry it, that on the hand comes besides."""
BASE_SWING = {"turn": 0.4, "shift": 0.1, "force": 5.0}
"""Amplitudes of a floating base's motion [rad, m], and of the force on its hand [N]."""

LENGTHS = {
    "l1": (2.0, 0.12),
    "l2": (3.6, 0.3),
    "l3": (3.0, 0.25),
    "l4": (0.7, 0.1),
    "l5": (0.5, 0.1),
}
"""Mass [kg] and length [m] of every body."""


def true_bodies():
    """Ten true parameters of every body."""
    rng, bodies = np.random.default_rng(5), {}
    for name, (mass, length) in LENGTHS.items():
        com = np.array([0.02, 0.015, 0.5 * length]) * rng.uniform(0.7, 1.3, 3)
        size = np.array([0.06, 0.05, 0.3 * length]) ** 2
        turn = Rotation.from_rotvec(0.3 * rng.standard_normal(3)).as_matrix()
        moments = turn @ np.diag(size.sum() - size) @ turn.T
        bodies[name] = inertia.from_mass_com_inertia(mass, com, mass * moments)
    return bodies


def described_bodies():
    """What the description says instead."""
    rng = np.random.default_rng(8)
    return {name: wrong_body(ten, rng) for name, ten in true_bodies().items()}


# -- descriptions ----------------------------------------------------------------------------------


def urdf_link(name, ten):
    m, c, moments = inertia.to_mass_com_inertia(ten)
    entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), *np.triu_indices(3), strict=True)
    numbers = " ".join(f'{key}="{float(moments[r, k])!r}"' for key, r, k in entries)
    return (
        f'<link name="{name}"><inertial><origin xyz="{row(c)}"/><mass value="{float(m)!r}"/>'
        f"<inertia {numbers}/></inertial></link>"
    )


def urdf_joint(name, parent, child, axis, at, mimic=""):
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}"/><axis xyz="{axis}"/>{mimic}'
        '<limit lower="-2.5" upper="2.5" velocity="4" effort="150"/></joint>'
    )


SERIAL = (
    ("j1", "base", "l1", "0 0 1", "0 0 0.1"),
    ("j2", "l1", "l2", "0 1 0", "0.05 0 0.12"),
    ("j3", "l2", "l3", "0 1 0", "0 0.02 0.3"),
)
GRIPPER = (
    ("j4", "l3", "l4", "1 0 0", "0 0.03 0.25"),
    ("j5", "l3", "l5", "1 0 0", "0 -0.03 0.25", '<mimic joint="j4" multiplier="-1"/>'),
)
FOLLOWER = ("j4", "l3", "l4", "1 0 0", "0 0.03 0.25", '<mimic joint="j2" multiplier="-0.5"/>')


def urdf(bodies, joints, base='<link name="base"/>'):
    links = "".join(urdf_link(j[2], bodies[j[2]]) for j in joints)
    return f'<robot name="arm">{base}{links}{"".join(urdf_joint(*j) for j in joints)}</robot>'


def slider_crank(bodies):
    """A turning column with a crank, a rod and a slider: two motors, four joints."""
    a, b, c, d = (inertial(bodies[name]) for name in ("l1", "l2", "l4", "l5"))
    return f"""<mujoco><compiler angle="radian"/><worldbody>
    <body name="l1"><joint name="j1" axis="0 0 1"/>{a}
      <body name="l2" pos="0.05 0 0.1"><joint name="j2" axis="0 1 0"/>{b}
        <body name="l4" pos="0.1 0 0.02"><joint name="p1" axis="0 1 0"/>{c}</body></body>
      <body name="l5" pos="0.3 0 0.15"><joint name="p2" type="slide" axis="1 0 0.2"/>{d}</body>
    </body></worldbody>
    <equality><connect body1="l4" body2="l5" anchor="0.22 0 0.04"/></equality>
    <actuator><motor joint="j1"/><motor joint="j2"/></actuator></mujoco>"""


def with_rotors(robot):
    """Every joint driven by a rotor on its parent, geared by 50."""
    bodies = []
    for k, body in enumerate(robot.bodies):
        turn = Rotation.from_rotvec([0.0, 0.5 * np.pi * (k > 0), 0.0]).as_matrix()
        bodies.append(replace(body, rotor=feasid.Rotor(50.0, turn, [0.0, 0.05, 0.0])))
    return feasid.Robot(bodies, robot.gravity)


ROTOR = (3e-5, 4e-5, 0.0, 0.15)
"""Of a symmetric rotor: moments across and along its axis, first moment and mass, SI."""


def load(kind, bodies):
    """The robot of a kind with these bodies."""
    if kind == "mimic":
        return feasid.load_robot(urdf(bodies, (*SERIAL, FOLLOWER)))
    if kind == "locked":
        return feasid.load_robot(urdf(bodies, (*SERIAL, *GRIPPER)), lock={"j4": 0.2})
    if kind == "loop":
        return feasid.load_robot(slider_crank(bodies))
    if kind == "floating":
        base = urdf_link("base", bodies["l1"])
        other = {**bodies, "l1": bodies["l4"]}
        return feasid.load_robot(urdf(other, SERIAL, base), floating=True)
    robot = feasid.load_robot(urdf(bodies, SERIAL))
    if kind == "passive":  # its last link hangs, and may turn over
        *others, last = robot.bodies
        robot = replace(robot, bodies=(*others, replace(last, limits=type(last.limits)())))
    return with_rotors(robot) if kind == "rotors" else robot


ROBOTS = ("serial", "mimic", "locked", "loop", "floating", "rotors", "elastic", "passive")
OF_KINDS = {
    "floating": {"imu": feasid.floating.Imu("base"), "contacts": FEET},
    "elastic": {"elastic": ["j2"]},
    "passive": {"passive": ["j3"]},
}
"""What a fit has to be told of a kind of robot."""
TERMS = {"Ia": 0.25, "fv": 1.2, "fc": 1.5, "fo": 0.3}
"""Of the first motor; those of the others are smaller."""
SPRING, BEARING = {"k": 800.0}, {"fv": 0.06}
"""Of an elastic joint and its link, and of a passive joint [N m/rad, N m s/rad]."""
LOGS = ("clean", "late", "gains", "tilted", "ripple", "commands")


# -- truth and logs --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class World:
    """A description, a log to fit with its options, and what neither of them shows."""

    robot: str
    kind: str
    description: feasid.Robot
    truth: feasid.Robot
    log: pd.DataFrame
    test_log: pd.DataFrame
    motion: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Of the test log, exactly: q, dq, ddq of the independent coordinates."""
    options: dict
    live: pd.DataFrame
    """The test log sample by sample as the same sensors give it, whatever its file looks like."""
    loaded: pd.DataFrame
    """A log of the robot with `LOAD` on its third body."""
    asked: dict = field(default_factory=dict)
    """Options of a row besides those of its world."""
    honest: bool = True
    """Whether what the fit is told of the robot is true."""

    @cached_property
    def torque(self):
        """What the true motors do during the test, shape (N, dof)."""
        return feasid.inverse_dynamics(self.truth, *self.motion)

    @cached_property
    def driven(self):
        """Rows of the coordinates whose motors' torques or commands are in the log."""
        motors = driven_coordinates(self.truth).items()
        return [k for j, k in motors if {f"tau_{j}", f"cmd_{j}"} & {*self.log}]

    def error(self, robot):
        """Relative error of a robot's torques on the test motion, whatever the fit says of it.

        Gains have ratios: of a log with wrong ones the factor that all share is left open. Where
        motors share hardly a parameter, as the two of a loop, the log does not tell that a gain is
        wrong, and a model of what it reads is right, too.
        """
        return self.missed(feasid.inverse_dynamics(robot, *self.motion))

    def missed(self, predicted):
        """The same of predicted torques, shape (N, dof)."""
        true, predicted = self.torque[:, self.driven], predicted[:, self.driven]
        if self.kind != "gains":
            return relative(predicted - true, true)
        as_read = true * np.where(np.arange(true.shape[1]) == 1, GAIN, 1.0)
        common = predicted * np.sum(predicted * true) / np.sum(predicted**2)
        return min(relative(common - true, true), relative(predicted - as_read, as_read))

    def parameters(self, robot):
        """True standard parameters in another robot's order; terms that it lacks are zero."""
        return values_for(robot, self.truth)

    @property
    def joints(self):
        """Names of the joints that motors drive."""
        return [*driven_coordinates(self.truth)]

    @property
    def hand(self):
        """The body that carries the load."""
        return self.description.bodies[2].name


def link_coordinates(robot):
    """Places of the joints that are none of a floating base or of an elastic joint's motor."""
    first = 6 if robot.bodies[0].floats else 0
    motors = robot.elastic.values()
    return {j: k for k, j in enumerate(robot.coordinates) if k >= first and j not in motors}


def driven_coordinates(robot):
    """Places of the coordinates that motors move, by joint."""
    motors = {j: robot.elastic.get(j, j) for j in link_coordinates(robot)}
    return {j: robot.coordinates.index(m) for j, m in motors.items() if m not in robot.passive}


def relative(off, of):
    """The size of one array in that of another."""
    return float(np.linalg.norm(off) / np.linalg.norm(of))


def true_robot(kind):
    """With drive inertia and friction at every motor."""
    bare = load(kind, true_bodies())
    told = OF_KINDS.get(kind, {})
    robot = bare.with_passive_joints(told.get("passive", ()))
    robot = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    robot = robot.with_elastic_joints(told.get("elastic", ()))
    delta = values_for(robot, bare)
    for k, drive in enumerate(robot.drives):
        driven = set(drive.coupling) <= set(robot.coordinates)
        terms = SPRING if "k" in drive.symbols else TERMS if "Ia" in drive.symbols else BEARING
        for symbol, place in robot.drive_columns(k).items():
            delta[place] = terms.get(symbol, 0.0) / (1 + 0.5 * k) if driven else 0.0
    if kind == "rotors":
        for k in range(len(robot.bodies)):
            delta[robot.rotor_columns(k)] = ROTOR
    return robot.with_transition(0.005).with_values(delta)


def with_ripple(robot):
    """At every motor."""
    drives = []
    for k, drive in enumerate(robot.drives):
        driven = set(drive.coupling) <= set(robot.coordinates) and "Ia" in drive.symbols
        values = np.array([*RIPPLE.values()]) / (1 + 0.5 * k) * driven
        more = {"symbols": (*drive.symbols, *RIPPLE), "values": np.r_[drive.values, values]}
        drives.append(replace(drive, ripple=WAVES, **more))
    return replace(robot, drives=tuple(drives))


def described_robot(kind):
    """As it is given to a fit."""
    robot = load(kind, described_bodies())
    if kind != "rotors":
        return robot
    values = np.array(robot.values)
    for k in range(len(robot.bodies)):
        values[robot.rotor_columns(k)] = 1.3 * np.array(ROTOR)
    return robot.with_values(values)


def fourier(rng, t, count, speed):
    """Periodic motions of so many joints, each at most so fast."""
    w = 2 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
    a, b = rng.uniform(-1, 1, (2, HARMONICS, count)) / np.arange(1, HARMONICS + 1)[:, None]
    q, dq, ddq = waves(t, w, a, -b)
    scale = speed / np.abs(dq).max(axis=0)
    return scale * q, scale * dq, scale * ddq


LOAD = np.array([0.016, 0.0, 0.0, 0.016, 0.0, 0.006, 0.0, 0.0, 0.1, 1.0])
"""Ten parameters of a load of one kilogram, 10 cm along the body."""

AMPLITUDE = 0.5
"""Largest angle of a crank from home [rad]."""


def joint_motion(kind, rng, t, count):
    q, dq, ddq = fourier(rng, t, count, SPEED)
    if kind != "loop":
        return q, dq, ddq
    scale = np.array([1.0, AMPLITUDE / np.abs(q[:, 1]).max()])
    return scale * q, scale * dq, scale * ddq


def base_motion(rng, t):
    """Rotation, position, twist and acceleration of a floating base, in its own frame."""
    turn, dturn, ddturn = fourier(rng, t, 3, 1.0)
    place, dplace, ddplace = fourier(rng, t, 3, 1.0)
    scale = BASE_SWING["turn"] / np.abs(turn).max(axis=0)
    angles, rates, second = (scale * x for x in (turn, dturn, ddturn))
    rotation = Rotation.from_euler("ZYX", angles).as_matrix()
    omega, domega = euler_rates(angles, rates, second)
    scale = BASE_SWING["shift"] / np.abs(place).max(axis=0)
    speed, push = (np.einsum("nji,nj->ni", rotation, scale * x) for x in (dplace, ddplace))
    return rotation, scale * place, np.hstack([omega, speed]), np.hstack([domega, push])


def euler_rates(angles, rates, second):
    """Angular velocity and acceleration in the body's frame of intrinsic ZYX angles."""
    _, y, x = angles.T
    dz, dy, dx = rates.T
    ddz, ddy, ddx = second.T
    sy, cy, sx, cx = np.sin(y), np.cos(y), np.sin(x), np.cos(x)
    omega = np.stack([dx - dz * sy, dy * cx + dz * sx * cy, -dy * sx + dz * cx * cy], 1)
    return omega, np.stack(
        [
            ddx - ddz * sy - dz * dy * cy,
            ddy * cx - dy * dx * sx + ddz * sx * cy + dz * (dx * cx * cy - dy * sx * sy),
            -ddy * sx - dy * dx * cx + ddz * cx * cy - dz * (dx * sx * cy + dy * cx * sy),
        ],
        1,
    )


@cache
def world(robot, kind="clean", seed=0):
    """The robot of this kind with this kind of log."""
    described, truth = described_robot(robot), true_robot(robot)
    if kind == "tilted":
        turn = Rotation.from_rotvec(TILT * np.array([0.6, -0.8, 0.0]))
        truth = truth.with_gravity(turn.apply(np.array(truth.gravity)))
    truth = with_ripple(truth) if kind == "ripple" else truth
    heavy, made, motions, options = carrying(truth), {}, {}, {}
    runs = ("log", SECONDS, truth), ("test_log", TEST_SECONDS, truth), ("loaded", SECONDS, heavy)
    for name, seconds, moved in runs:
        rng = np.random.default_rng([seed, len(made), *robot.encode()])
        t = np.arange(round(seconds * RATE)) / RATE
        record = floating_record if robot == "floating" else fixed_record
        motions[name], tau, columns = record(robot, moved, rng, t)
        signals, options = instruments(kind, moved, t, motions[name], tau, rng)
        if moved is heavy:
            columns |= wrist_sensor(truth, motions[name], rng)
        made[name] = pd.DataFrame({"t": t, **columns, **signals})
    options = {**options, **OF_KINDS.get(robot, {})}
    logs = made["log"], made["test_log"]
    both = made["test_log"], made["loaded"]
    return World(robot, kind, described, truth, *logs, motions["test_log"], options, *both)


def carrying(robot):
    """The robot with the load on its third body that has mass."""
    values = np.array(robot.values)
    values[robot.inertial_columns[hand_of(robot)]] += LOAD
    return robot.with_values(values)


def hand_of(robot):
    """The third body that has mass."""
    return [k for k, body in enumerate(robot.bodies) if not body.massless][2]


WRENCH_NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
"""Of a wrist sensor [N, N m]."""


def wrist_sensor(robot, motion, rng):
    """Columns of a sensor between the third body and its load, with offsets."""
    here, still = (np.eye(3), np.zeros(3)), np.zeros(3 + robot.dof)
    columns = _wrench_regressor(robot, hand_of(robot), here, np.eye(10), tuple(motion), still)
    felt = columns @ LOAD + rng.normal(size=6)
    felt += WRENCH_NOISE * rng.standard_normal(felt.shape)
    return dict(zip(CHANNELS, felt.T, strict=True))


def fixed_record(kind, truth, rng, t):
    motion = joint_motion(kind, rng, t, len(link_coordinates(truth)))
    if kind == "elastic":
        motion = behind_springs(truth, motion)
    if kind == "passive":
        motion = swinging(truth, motion)
    return motion, feasid.inverse_dynamics(truth, *motion), {}


def behind_springs(truth, motion):
    """Where the motor of an elastic joint is while its link moves like this.

    Springs have no damping, and these motions are whole periods, so that their Fourier series
    have exact derivatives.
    """
    (link, motor), *_ = truth.elastic.items()
    place, ahead = truth.coordinates.index(link), truth.coordinates.index(motor)
    rigid = [np.insert(x, ahead, x[:, place - 1], axis=1) for x in motion]
    stiffness = truth.values[truth.parameter_names.index((f"{link}_spring", "k"))]
    stretch = feasid.inverse_dynamics(truth, *rigid)[:, place] / stiffness
    frequencies = 2j * np.pi * RATE * np.fft.rfftfreq(len(stretch))
    series = np.fft.rfft(stretch)
    for order, signal in enumerate(rigid):
        signal[:, ahead] += np.fft.irfft(frequencies**order * series, len(stretch))
    return tuple(rigid)


def swinging(truth, motion):
    """The same motion of the motors, and that of the last joint, which has none.

    By Runge and Kutta's fourth order; the motion between samples is that of a Fourier series.
    """
    step, count = 1 / RATE, len(motion[0])
    spectra = [np.pad(np.fft.rfft(x, axis=0), ((0, count // 2), (0, 0))) for x in motion]
    fine = [2 * np.fft.irfft(x, axis=0) for x in spectra]
    arm = feasid.CompiledDynamics(truth)

    def acceleration(k, angle, speed):
        q, dq, ddq = (np.r_[x[k, :-1], y] for x, y in zip(fine, (angle, speed, 0), strict=True))
        return -arm.inverse_dynamics(q, dq, ddq)[-1] / arm.mass_matrix(q)[-1, -1]

    state, states = np.array([np.pi, 0.0]), []
    for k in range(0, 2 * count, 2):
        slopes = [np.array([state[1], acceleration(k, *state)])]
        states.append((*state, slopes[0][1]))
        for part, at in ((0.5, k + 1), (0.5, k + 1), (1.0, (k + 2) % (2 * count))):
            middle = state + part * step * slopes[-1]
            slopes.append(np.array([middle[1], acceleration(at, *middle)]))
        state = state + step / 6 * np.array([1, 2, 2, 1]) @ slopes
    last = np.array(states).T
    return tuple(np.column_stack([x[:, :-1], y]) for x, y in zip(motion, last, strict=True))


def floating_record(kind, truth, rng, t):
    """With the base's pose, its IMU and the forces of all contacts."""
    joints = joint_motion(kind, rng, t, truth.dof - 6)
    rotation, position, twist, acceleration = base_motion(rng, t)
    motion = feasid.floating.floating_motion(
        truth, joints, rotation=rotation, position=position, twist=twist, acceleration=acceleration
    )
    levers = {
        name: frame_jacobian(truth, motion.q, foot.body, foot.position)[:, 3:]
        for name, foot in FEET.items()
    }
    forces = {"hand": BASE_SWING["force"] * fourier(rng, t, 3, 1.0)[0]}
    tau = feasid.inverse_dynamics(truth, *motion)
    tau -= np.einsum("nij,ni->nj", levers["hand"], forces["hand"])
    feet = ("front", "left", "right")
    carry = np.concatenate([levers[name] for name in feet], axis=1)
    needed = np.linalg.pinv(np.swapaxes(carry[:, :, :6], 1, 2)) @ tau[:, :6, None]
    forces |= dict(zip(feet, np.split(needed[:, :, 0], 3, axis=1), strict=True))
    tau -= np.einsum("nij,ni->nj", carry, needed[:, :, 0])
    felt = acceleration[:, 3:] - np.einsum("nji,j->ni", rotation, truth.gravity)
    quaternion = Rotation.from_matrix(rotation).as_quat()
    columns = {f"base_q{a}": quaternion[:, k] for k, a in enumerate("xyzw")}
    for k, axis in enumerate("xyz"):
        columns |= {f"gyro_{axis}": twist[:, k], f"acc_{axis}": felt[:, k]}
        columns |= {f"base_{axis}": position[:, k]}
        columns |= {f"force_{name}_{axis}": force[:, k] for name, force in forces.items()}
    return tuple(motion), tau, columns


KP = 400.0
"""Gain of the servos of commanded logs [N m / rad]."""
TRUSTED = 0.001
"""Relative deviation with which these are told to a fit."""


def instruments(kind, truth, t, motion, tau, rng):
    """Columns of positions and torques as a log of this kind has them, and what must be told."""
    links, motors = link_coordinates(truth), driven_coordinates(truth)
    joints, tau = [*motors], tau[:, [*motors.values()]]
    q = motion[0][:, [*motors.values()]]
    noisy = tau + NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
    encoders = {f"q_{j}": k for j, k in links.items()}
    encoders |= {f"theta_{j}": motors[j] for j in truth.elastic}
    columns = {name: np.round(motion[0][:, k] / STEP) * STEP for name, k in encoders.items()}
    if kind == "commands":
        # A servo holds a command from its row on, half a period late: its mean around the next row.
        ahead = np.vstack([noisy[1:], noisy[-1:]]) / KP + np.vstack([q[1:], q[-1:]])
        told = {"command": "position", "gains": dict.fromkeys(joints, (KP, TRUSTED))}
        return columns | {f"cmd_{j}": ahead[:, k] for k, j in enumerate(joints)}, told
    if kind == "late":
        noisy = np.stack([np.interp(t - DELAY, t, x) for x in noisy.T], axis=1)
    if kind == "gains":
        noisy[:, 1] *= GAIN
    return columns | {f"tau_{j}": noisy[:, k] for k, j in enumerate(joints)}, {}
