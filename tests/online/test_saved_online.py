"""A saved online fit, whatever its options, robot and state: the same bits, and the same future."""

import json
import pickle
from functools import cache

import numpy as np
import pytest
from arms import panda
from generated import tree_with_couplings
from logs import arm_parameters, waves
from robots import ARM
from seeds import NEW_SEEDS, seed_of
from written import changed_archive, model_of_archive

import feasid

RATE = 100.0
CHANGE = 1800
"""Sample at which the last body becomes heavier."""


@cache
def chain():
    return panda().without_joint_terms().locked(dict.fromkeys(panda().joints[3:], 0.3))


def tree():
    """With couplings, as MuJoCo's files have them."""
    return feasid.load_robot(tree_with_couplings(1))


ROBOTS = {"chain": chain, "slide": lambda: feasid.load_robot(ARM), "tree": tree}

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
    """Positions, velocities and torques with noise; the last body is heavier from `CHANGE` on."""
    t = np.arange(samples) / RATE
    rates, (a, b) = 2 * np.pi * rng.uniform(0.1, 0.7, 4), rng.uniform(-0.3, 0.3, (2, 4, robot.dof))
    q, dq, ddq = waves(t, rates, a, b)
    robot = robot.with_joint_terms()
    true = arm_parameters(robot)
    true[robot.inertial_columns] *= rng.uniform(0.8, 1.25)
    heavy = true.copy()
    heavy[robot.inertial_columns[-1]] *= 2.5
    tau = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=true)
    tau[CHANGE:] = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=heavy)[CHANGE:]
    scale = 0.01 * np.abs(tau).max(axis=0)
    return q, dq, tau + scale * rng.standard_normal(tau.shape), 1.7e9 + t


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
    return (bits(fit.latest), fit.changes, fit.faults, fit.samples, repr(fit.time), fit.gate.open,
            [t.tobytes() for t in fit.reduced.triangles], [str(n) for n in fit.notes])  # fmt: skip


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("seed", NEW_SEEDS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ROBOTS)
def test_a_loaded_fit_goes_on_as_one_that_was_restarted(kind, state, seed, tmp_path):
    rng, robot = np.random.default_rng(seed_of(seed)), ROBOTS[kind]()
    options, (stamps, speeds, faulty) = drawn_options(rng, robot), rng.random(3) < 0.5
    print(options, stamps, speeds, faulty)
    end = max(STATES[state], default=0) + 55 * (state != "fresh")
    q, dq, tau, t = log_of(robot, rng, end + 500)
    if faulty:
        tau[rng.integers(len(tau), size=9), 0] = np.nan

    def feed(fit, first, last):
        part = slice(first, last)
        fit.extend(q[part], tau[part], dq[part] if speeds else None, t[part] if stamps else None)

    path = tmp_path / "online.feasid"
    with make(robot, options) as fit:
        at = 0
        for stop in STATES[state]:
            feed(fit, at, stop)
            at = stop
            fit.estimate()
        feed(fit, at, end)
        fit.save(path)
        copy = pickle.loads(pickle.dumps(fit))
        again = make(robot, options)
        again.restore(fit.state())
        with feasid.load(path) as loaded, copy, again:
            assert loaded.options == fit.options
            assert loaded.robot.parameter_names == fit.robot.parameter_names
            assert seen(loaded) == seen(fit) == seen(copy) == seen(again)
            for one in (fit, copy):
                one.restart()
            for first in range(end, end + 500, 100):
                futures = []
                for one in (fit, loaded, copy, again):
                    feed(one, first, first + 100)
                    futures.append((bits(one.estimate()), seen(one)))
                assert futures[1:] == futures[:1] * 3


def test_a_change_and_a_gate_that_opened_are_kept(tmp_path):
    """That the states above are what they are called, with options of this test's own."""
    robot = chain()
    q, dq, tau, _ = log_of(robot, np.random.default_rng(seed_of("drawn")), 2600)
    fit = feasid.OnlineFit(robot, RATE, cutoff=5.0)
    for first in range(0, 2600, 100):
        fit.extend(q[first : first + 100], tau[first : first + 100], dq[first : first + 100])
        fit.estimate()
    assert fit.changes
    assert any(d.open for d in fit.decisions)
    fit.save(tmp_path / "online.feasid")
    assert seen(feasid.load(tmp_path / "online.feasid")) == seen(fit)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("online") / "a.feasid"
    fit = feasid.OnlineFit(chain(), RATE, window=400)
    q, _, tau, _ = log_of(chain(), np.random.default_rng(0), 300)
    fit.extend(q, tau)
    fit.estimate()
    fit.save(path)
    return path


def refusal(read):
    """The message of an error of the package's own; None where there is none."""
    try:
        read()
    except feasid.FeasidError as error:
        return str(error)


def test_damaged_files_and_those_of_an_earlier_format_are_refused(saved, tmp_path):
    """Each number of the state, one after the other, is of another kind."""
    model, rng = model_of_archive(saved), np.random.default_rng(seed_of("drawn"))
    text = json.dumps(model | {"version": 4})
    older = changed_archive(saved, tmp_path / "old", **{"model.json": text})
    with pytest.raises(feasid.errors.InputError, match="of format 4") as refused:
        feasid.load(older)
    assert str(older) in str(refused.value)
    texts = ["[]", json.dumps(model)[:99]]
    parts = model["record"]["of"]["state"]["items"]
    for k, (_, part) in enumerate(parts):
        for j in range(len(part["items"])):
            damaged = json.loads(json.dumps(model))
            wrong = ("x", [[1]], -7)[rng.integers(3)]
            damaged["record"]["of"]["state"]["items"][k][1]["items"][j][1] = wrong
            texts.append(json.dumps(damaged))
        damaged = json.loads(json.dumps(model))
        damaged["record"]["of"]["state"]["items"][k][1]["items"].append(["more", 1])
        texts.append(json.dumps(damaged))
    allowed = 0
    for text in texts:
        damaged = changed_archive(saved, tmp_path / "b.feasid", **{"model.json": text})
        message = refusal(lambda path=damaged: feasid.load(path).estimate())
        allowed += message is None
        assert message is None or str(damaged) in message
    assert allowed <= 3  # numbers that any number may be: two clocks and a share
    with pytest.raises(feasid.FeasidError, match="exists"):
        feasid.load(saved).save(saved)
