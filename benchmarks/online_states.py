"""Online fits of drawn options in every state, for `benchmarks.round_trip`."""

from functools import cache

import numpy as np
from arms import panda
from logs import arm_parameters, waves
from robots import ARM

import feasid
from benchmarks.generated import tree_with_couplings

RATE = 100.0
AFTER = 500
"""Samples after a fit was saved and read."""
STIFFNESS = 3000.0
"""Of elastic joints [N m/rad]."""
CHANGE = 1800
"""Sample at which the last body becomes heavier."""


@cache
def chain():
    return panda().without_joint_terms().locked(dict.fromkeys(panda().joints[3:], 0.3))


def tree():
    """With couplings, as MuJoCo's files have them."""
    return feasid.load_robot(tree_with_couplings(1))


def springs():
    """With a spring between the motor and the link of its last joint."""
    return chain().with_elastic_joints(chain().joints[-1:])


def pendulum():
    """Whose last joint has no motor."""
    return chain().with_passive_joints(chain().joints[-1:])


ROBOTS = {"chain": chain, "slide": lambda: feasid.load_robot(ARM), "tree": tree,
          "springs": springs, "pendulum": pendulum}  # fmt: skip

STATES = {"fresh": (), "learning": (330,), "estimated": (600, 777), "accepted": (900, 1200, 1555),
          "changed": (900, 1300, 1700, CHANGE + 150, CHANGE + 333)}  # fmt: skip
"""Numbers of samples after which an estimate is made; the fit is saved 55 samples later."""


def drawn_options(rng, robot):
    """Every option of the constructor, each left out now and then."""
    block = int(rng.integers(1, 40))
    memory = [{}, {"forgetting": rng.uniform(0.99, 0.9999)},
              {"window": block * int(rng.integers(15, 60)), "block": block}]  # fmt: skip
    mass = robot.inertial_columns[-1][9]
    options = {
        "cutoff": rng.uniform(3.0, 10.0),
        "derivative_cutoff": rng.uniform(15.0, 40.0),
        "smoother": str(rng.choice(["polynomial", "moving-average"])),
        "every": int(rng.integers(1, 6)),
        "slow_weight": rng.uniform(0.1, 1.0),
        "prior_weight": rng.uniform(0.5, 8.0),
        "full": int(rng.integers(1, 500)),
        "rules": feasid.AcceptanceRules(
            r2_closing=rng.uniform(0.4, 0.9), patience=int(rng.integers(1, 4))
        ),
        "false_alarms": rng.uniform(0.0, 30.0),
        "carrier": robot.bodies[int(rng.integers(len(robot.bodies)))].name,
        "friction": [("viscous",), ("viscous", "coulomb", "offset"), ()][rng.integers(3)],
        "drive_inertia": bool(rng.random() < 0.5),
        "worker": bool(rng.random() < 0.5),
    }
    if np.isfinite(robot.values[mass]):
        options["feasible"] = float(rng.uniform(2.0, 9.0))  # times the described total mass
    kept = {k: v for k, v in options.items() if rng.random() < 0.7}
    return kept | memory[rng.integers(3)]


def make(robot, options):
    options = dict(options)
    if "feasible" in options:
        terms = {k: options.pop(k) for k in ("friction", "drive_inertia") if k in options}
        robot = robot.with_joint_terms(**terms)
        total = float(np.nansum(robot.values[robot.inertial_columns[:, 9]]))
        most = options.pop("feasible") * total
        options["feasible"] = feasid.feasible_set(robot, total_mass=(0.0, most))
        options["base"] = feasid.base_parameters(robot)
    return feasid.OnlineFit(robot, RATE, **options)


def log_of(robot, rng, samples):
    """Positions, velocities and torques with noise; the last body is heavier from `CHANGE` on.

    Motors of elastic joints have no inertia, and turn further than their links by the springs.
    """
    t = np.arange(samples) / RATE
    rigid = robot.without_elastic_joints().with_joint_terms()
    rates, (a, b) = 2 * np.pi * rng.uniform(0.1, 0.7, 4), rng.uniform(-0.3, 0.3, (2, 4, rigid.dof))
    q, dq, ddq = waves(t, rates, a, b)
    true = arm_parameters(rigid)
    true[rigid.inertial_columns] *= rng.uniform(0.8, 1.25)
    heavy = true.copy()
    heavy[rigid.inertial_columns[-1]] *= 2.5
    tau = feasid.inverse_dynamics(rigid, q, dq, ddq, parameters=true)
    tau[CHANGE:] = feasid.inverse_dynamics(rigid, q, dq, ddq, parameters=heavy)[CHANGE:]
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.standard_normal(tau.shape)
    links = {motor: link for link, motor in robot.elastic.items()}
    places = [rigid.coordinates.index(links.get(name, name)) for name in robot.coordinates]
    turned = np.isin(robot.coordinates, [*links]) * tau[:, places] / STIFFNESS
    dq = dq[:, places] + np.gradient(turned, 1 / RATE, axis=0)
    return q[:, places] + turned, dq, tau[:, places], 1.7e9 + t


def bits(estimate):
    """All numbers of an estimate but for the time that it took."""
    if estimate is None:
        return None
    e, d = estimate, estimate.decision
    arrays = e.delta, e.covariance, e.noise, e.r2_joints, d.evidence.error, d.evidence.nominal_error
    evidence = {k: v for k, v in vars(d.evidence).items() if np.ndim(v) == 0}
    return ([a.tobytes() for a in arrays], repr((e.time, e.rows, e.r2, e.verified, e.age, e.fresh)),
            d.open, d.reasons, repr(evidence))  # fmt: skip


def seen(fit):
    """What a caller sees of a fit."""
    triangles = [t.tobytes() for t in fit.reduced.triangles]
    learnt = fit.changes, fit.faults, fit.samples, repr(fit.time), fit.gate.open, triangles
    return fit.options, fit.robot.parameter_names, bits(fit.latest), learnt, [*map(str, fit.notes)]


def drawn_state(seed, quick):
    """Arguments of `benchmarks.round_trip.Saved`."""
    rng = np.random.default_rng(seed)
    state = "learning" if quick else str(rng.choice([*STATES]))
    kind = "slide" if quick else str(rng.choice([*ROBOTS]))
    robot = ROBOTS[kind]()
    options, (stamps, speeds, faulty) = drawn_options(rng, robot), rng.random(3) < 0.5
    end = max(STATES[state], default=0) + 55 * (state != "fresh")
    q, dq, tau, t = log_of(robot, rng, end + AFTER)
    if faulty:
        tau[rng.integers(len(tau), size=9), 0] = np.nan

    def feed(fit, first, last):
        part = slice(first, last)
        fit.extend(q[part], tau[part], dq[part] if speeds else None, t[part] if stamps else None)

    one, at = make(robot, options), 0
    for stop in STATES[state]:
        feed(one, at, stop)
        at = stop
        one.estimate()
    feed(one, at, end)

    def future(fit, folder):
        """A loaded fit goes on as the one that was saved does after a pause."""
        if fit is one:
            fit.restart()
        out = []
        for first in range(end, end + AFTER, 100):
            feed(fit, first, first + 100)
            out.append((bits(fit.estimate()), seen(fit)))
        fit.close()
        if fit.latest is not None:
            said = str(feasid.write(fit.latest.robot, folder / "arm.xml"))
            out.append(said.replace(str(folder), ""))
            out.append((folder / "arm.xml").read_bytes())
        return out

    words = f"{kind}, {state}, {options}, stamps {stamps}, speeds {speeds}, faulty {faulty}"
    return one, seen, future, type(one).save, feasid.load, "one.feasid", words
