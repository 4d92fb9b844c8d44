"""Are robots drawn from a fit what they claim to be?  python benchmarks/sampling.py COMMAND [N]

    calibration 200   ranks of the truth among draws, on arms whose truth is drawn from the prior
    coverage 20       90 % bands of torques on another motion, of arms with other faults, whose logs
                      have the mistakes that a fit allows for, and have none
    time              processor time of 1000 draws of a seven-joint arm, in that of its fit
    picture           draws docs/pictures/samples.png

Motion and torques are MuJoCo's. Ranks are uniform if the draws are right (simulation-based
calibration, Talts et al. 2018): chi-square over ten bins per quantity, with Bonferroni's factor.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import feasid
from benchmarks import simulated
from feasid.identification.effects.table import USUAL
from feasid.robot import inertia

DRAWS, BINS = 99, 10
MASS = 0.2
QUANTITIES = ("a base parameter", "a joint term", "total mass", "first mass", "last mass")


def random_arm(rng: np.random.Generator) -> feasid.Robot:
    """Two to six revolute joints, links a fifth of a metre long with generic bodies."""
    rows = [
        (float(rng.choice([0.0, 0.5, -0.5])) * np.pi, *rng.uniform(0.05, 0.35, 2), 0.0)
        for _ in range(rng.integers(2, 7))
    ]
    robot = feasid.Robot.from_dh(rows, convention="modified")
    ten = []
    for _ in robot.bodies:
        spread = rng.standard_normal((3, 3)) * 0.05
        moments = spread @ spread.T + 0.03**2 * np.eye(3)
        c = rng.uniform(-0.1, 0.1, 3)
        mass = rng.uniform(0.5, 4.0)
        about = mass * (np.trace(moments) * np.eye(3) - moments)
        ten.append(inertia.from_mass_com_inertia(mass, c, about))
    return robot.with_values(np.concatenate(ten))


def truth_and_log(robot, delta, rng, seconds, delay=0.0):
    """The robot with these bodies and drawn joint terms, its log in MuJoCo and a faster motion."""
    terms = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    whole = np.zeros(terms.size)
    whole[terms.inertial_columns] = delta
    way = simulated.fourier(robot, rng, seconds, simulated.FITTED_SPEED)
    rigid = feasid.inverse_dynamics(robot, *(x[::20] for x in way), parameters=delta.ravel())
    size = np.sqrt(np.mean(rigid**2, axis=0)) + 0.02 * np.sqrt(np.mean(rigid**2))
    seen = simulated.diagonal_inertia(robot, delta.ravel(), way[0][::200])
    for k, (s, m) in enumerate(zip(size, seen, strict=True)):
        place = terms.drive_columns(k)
        whole[place["Ia"]] = rng.uniform(0.2, 1.0) * m
        whole[place["fv"]], whole[place["fc"]] = rng.uniform(0.05, 0.2, 2) * s
    conditions = simulated.Conditions(seconds=seconds, stiction=False, lost=0.0, delay=delay)
    model = simulated.mujoco_model(terms, whole, stiction=False)
    log = simulated.record(model, terms, whole, way, rng, conditions)
    return terms.with_values(whole), log, simulated.fourier(robot, rng, 5.0, simulated.TEST_SPEED)


def calibration(count: int) -> None:
    """Ranks of drawn truths among draws of the posterior."""
    ranks = []
    weight = 1.0 / MASS**2 - 2.5
    for seed in range(count):
        rng = np.random.default_rng([seed, 9])
        robot = random_arm(rng)
        drawn = feasid.sample(robot, 1, mass=MASS, seed=seed)
        delta = drawn.parameters[0][robot.inertial_columns]
        truth, log, _ = truth_and_log(robot, delta, rng, 8.0)
        fit = feasid.fit(
            log, robot, friction=("viscous", "coulomb", "offset"), drive_inertia=True,
            prior_weight=weight, plausible=False, calibration=None, diagnose=False,
        )  # fmt: skip
        known = dict(zip(truth.parameter_names, truth.values, strict=True))
        exact = np.array([known[n] for n in fit.robot.parameter_names])
        found = fit.sample(DRAWS, seed=seed)
        masses = fit.robot.inertial_columns[:, 9]
        base = fit.base.K[rng.integers(len(fit.base.K))]
        term = np.eye(len(exact))[rng.choice([*fit.robot.drive_columns(0).values()])]
        total, first, last = np.zeros((3, len(exact)))
        total[masses], first[masses[0]], last[masses[-1]] = 1.0, 1.0, 1.0
        forms = np.array([base, term, total, first, last])
        ranks.append(np.sum(found.parameters @ forms.T < forms @ exact, axis=0))
        print(seed, fit.robot.dof, ranks[-1], f"{found.least_effective:.0f}", flush=True)
    for name, own in zip(QUANTITIES, np.array(ranks).T, strict=True):
        bins = np.bincount(own * BINS // (DRAWS + 1), minlength=BINS)
        statistic = float(np.sum((bins - count / BINS) ** 2) / (count / BINS))
        p = min(1.0, len(QUANTITIES) * chi2.sf(statistic, BINS - 1))
        print(f"{name:18} {bins} chi-square {statistic:.1f}, p {p:.3g} after Bonferroni")


def coverage(count: int) -> None:
    """Share of torques of another motion within 90 % bands; the description has other faults.

    Mistakes of the logs are drawn with the deviations that fits allow for by default: a tilted
    base, joint zeros and a delay. Torques are compared at true positions in true gravity: robots
    are drawn, not sensors.
    """
    inside = {"mistakes": [], "none": [], "none allowed for": []}
    for seed in range(count):
        for kind, kept in inside.items():
            rng = np.random.default_rng([seed, 10])
            robot = random_arm(rng)
            ten = robot.values[robot.inertial_columns]
            delta = np.array([simulated.wrong_body(body, rng) for body in ten])
            draw = np.random.default_rng([seed, 11]).standard_normal(robot.dof + 3)
            draw *= kind == "mistakes"
            tilt = Rotation.from_rotvec([*(USUAL["tilt"] * draw[:2]), 0.0])
            there = robot.with_gravity(tilt.apply(np.array(robot.gravity)))
            truth, log, test = truth_and_log(
                there, delta, rng, 8.0, USUAL["delay"] * draw[2] / simulated.RATE
            )
            for k, joint in enumerate(robot.joints):
                log[f"q_{joint}"] -= USUAL["zero"] * draw[3 + k]
            allowed = None if kind == "none allowed for" else "usual"
            fit = feasid.fit(log, robot, drive_inertia=True, calibration=allowed)
            way = [x[::50].copy() for x in test]
            right = feasid.inverse_dynamics(truth, *way)
            for found in fit.calibration.confirmed:  # its robots take positions as logged
                if found.at.kind == "zero":
                    way[0][:, found.at.joint] -= found.value[0]
            drawn = (r.with_gravity(truth.gravity) for r in fit.sample(200, seed=seed))
            torques = np.array([feasid.inverse_dynamics(r, *way) for r in drawn])
            low, high = np.quantile(torques, (0.05, 0.95), axis=0)
            kept.append(np.mean((low <= right) & (right <= high)))
        print(seed, robot.dof, {k: f"{x[-1]:.3f}" for k, x in inside.items()}, flush=True)
    for kind, kept in inside.items():
        print(f"90 % bands hold {np.mean(kept):.3f} of the torques of {count} arms: {kind}")


def timing() -> None:
    """Draws of a Panda's fit."""
    hidden = simulated.hidden("panda")
    start = time.process_time()
    fit = feasid.fit(hidden.log, hidden.robot, drive_inertia=True)
    middle = time.process_time()
    found = fit.sample(1000)
    end = time.process_time()
    ratio = (end - middle) / (middle - start)
    print(f"{found}; {end - middle:.1f} s of processor time, {ratio:.2g} times the fit's")


def picture() -> None:
    """Masses of robots drawn from what a log leaves open, and around the description."""
    import matplotlib.pyplot as plt

    log = feasid.datasets.load("unitree_z1")
    fit = feasid.fit(log)
    masses = fit.robot.inertial_columns[:, 9]
    around = feasid.sample(log.attrs["robot"], 300, mass=0.1)
    place = np.arange(len(masses))
    figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
    own = around.robot.inertial_columns[:, 9]
    for drawn, columns, shift, label in (
        (around, own, -0.15, "around the description, mass=0.1"),
        (fit.sample(300), masses, 0.15, "from what the log leaves open"),
    ):
        x = place + shift + np.random.default_rng(0).uniform(-0.08, 0.08, (300, 1))
        axes.plot(x.ravel(), drawn.parameters[:, columns].ravel(), ".", ms=2, label=label)
    axes.set(xticks=place, ylabel="kg", title="masses of 300 robots each, Unitree Z1")
    axes.set_xticklabels([body.name for body in fit.robot.bodies])
    axes.legend(markerscale=4)
    figure.savefig(Path(__file__).parents[1] / "docs" / "pictures" / "samples.png", dpi=90)


if __name__ == "__main__":
    if sys.argv[1:] in (["time"], ["picture"]):
        {"time": timing, "picture": picture}[sys.argv[1]]()
    elif len(sys.argv) == 3 and sys.argv[1] in ("calibration", "coverage"):
        {"calibration": calibration, "coverage": coverage}[sys.argv[1]](int(sys.argv[2]))
    else:
        sys.exit(__doc__)
