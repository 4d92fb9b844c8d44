"""How far fits are from hidden truth in MuJoCo, and from real torques that were not fitted.

    python benchmarks/estimation.py simulated [--seeds 10] [--tracking] [--published]
    python benchmarks/estimation.py descriptions [--seeds 3]
    python benchmarks/estimation.py samples [--seeds 3]
    python benchmarks/estimation.py real
    python benchmarks/estimation.py verdicts [--seeds 3]

"simulated": default `feasid.fit` on the arms of `tests/simulated.py`, nothing told. Error on a
faster motion over that of the true parameters, both sides filtered; error of the base parameters;
how often intervals of 1.96 deviations hold the truth, and of the friction terms that the fit
chose alone; ``--tracking`` adds computed torque at
2.5 rad/s, over that with the truth and with plain least squares on the same log, ``--published``
the same with `feasid.SOUSA_2014`. "descriptions": masses of the description wrong threefold, and
placeholders. "samples": an exact model with white noise, from 2 500 to 250 000 samples. "real":
logs of the repository; torques and prediction filtered by a zero-phase third-order Butterworth at
the cut-off named, derivatives at four times it. "verdicts": logs without a mistake of the six
robots of `benchmarks/worlds`, with seeds drawn at run time: error over the truth's, error of base
parameters, coverage of their intervals and the share of fits called good; and real logs split in
two: the real error of the part that was not fitted, over what the fit predicted of it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import feasid
from feasid import datasets
from feasid.logs.filters import low_pass
from feasid.logs.frame import prepare
from feasid.robot.inertia import from_mass_com_inertia

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks import simulated

CONDITIONS = {
    "stiction": simulated.Conditions(),
    "exact friction law": simulated.Conditions(stiction=False),
    "half a sample of delay": simulated.Conditions(delay=0.5 / simulated.RATE),
    "1 % torque ripple": simulated.Conditions(ripple=0.01),
}

CHOSEN = ("fs", "fl")
"""Symbols of terms that a fit adds where held-out stretches ask for them; the truth has none."""

PLAIN = 20.0
"""Cut-off [Hz] of plain least squares' signals, the best of those tried."""

SAMPLES = (2_500, 25_000, 250_000)
"""Ten times more each: the error should be 3.2 times less."""


def judged(arm: simulated.Hidden, fit: feasid.Fit, tracking: bool) -> dict[str, float]:
    """How far a fit is from the truth."""
    truth, beta = arm.truth(fit.base), fit.beta
    test = feasid.reduce(arm.test, base=fit.base, filtering="equations")
    own = np.linalg.norm(test.residuals(truth))
    inside = np.abs(beta - truth) < 1.96 * fit.base_table["std"].to_numpy()
    chosen = np.array([e.rpartition(".")[2] in CHOSEN for e in fit.base.expressions])
    out = {
        "error / truth's": float(np.linalg.norm(test.residuals(beta)) / own),
        "base parameters": float(np.linalg.norm(beta - truth) / np.linalg.norm(truth)),
        "covered": float(np.mean(inside)),
        "chosen terms covered": float(np.mean(inside[chosen])) if chosen.any() else np.nan,
    }
    if tracking:
        smooth = arm.terms.with_transition(fit.robot.drives[0].transition)
        of_truth = simulated.tracking_error(arm, smooth.with_values(arm.delta))
        own = simulated.tracking_error(arm, fit.robot)
        out["tracking / truth's"] = own / of_truth
        plain = simulated.tracking_error(arm, least_squares(arm, fit), gains=fit.robot)
        out["tracking / least squares'"] = own / plain
    return out


def least_squares(arm: simulated.Hidden, fit: feasid.Fit) -> feasid.Robot:
    """Plain least squares on the same log: signals filtered, no weights, nothing feasible."""
    r, rho, _ = feasid.reduce(arm.log, base=fit.base, filtering="signals", cutoff=PLAIN).triangle()
    K = np.asarray(fit.base.K)
    rest = rho - r @ K @ fit.robot.values
    return fit.robot.with_values(fit.robot.values + np.linalg.lstsq(r @ K, rest, rcond=None)[0])


def shown(what: str, rows: list[dict[str, float]]) -> None:
    cells = [f"{what:<34}"]
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        if name.endswith(("covered", "good")):
            told = values[np.isfinite(values)]
            cells.append(f"{name} {told.mean():.3f}" if told.size else f"{name} -")
        else:
            cells.append(f"{name} {np.median(values):.4g} (worst {values.max():.4g})")
    print("; ".join(cells), flush=True)


def in_simulation(seeds: int, tracking: bool, published: bool) -> None:
    for what, conditions in CONDITIONS.items():
        rows = []
        for name in simulated.ARMS:
            for seed in range(seeds):
                arm = simulated.hidden(name, seed, conditions)
                fit = feasid.fit(arm.log, arm.robot, diagnose=False)
                rows.append(judged(arm, fit, tracking))
        shown(what, rows)
        if published:
            rows = []
            for name in simulated.ARMS:
                for seed in range(seeds):
                    arm = simulated.hidden(name, seed, conditions)
                    chain = {**feasid.SOUSA_2014, "cutoff": None}  # faster than the WAM
                    fit = feasid.fit(arm.log, arm.robot, diagnose=False, **chain)
                    rows.append(judged(arm, fit, tracking))
            shown(f"{what}, published chain", rows)


def with_wrong_descriptions(seeds: int) -> None:
    placeholder = from_mass_com_inertia(1.0, np.zeros(3), 1e-3 * np.eye(3))
    rows: dict[str, list[dict[str, float]]] = {"masses times 3": [], "masses / 3": [], "1 kg": []}
    for name in simulated.ARMS:
        for seed in range(seeds):
            arm = simulated.hidden(name, seed)
            own = arm.robot.values
            said = {
                "masses times 3": 3.0 * own,
                "masses / 3": own / 3.0,
                "1 kg": np.tile(placeholder, len(arm.robot.bodies)),
            }
            for what, values in said.items():
                fit = feasid.fit(arm.log, arm.robot.with_values(values), diagnose=False)
                rows[what].append(judged(arm, fit, False))
    for what, found in rows.items():
        shown(what, found)


def with_more_samples(seeds: int) -> None:
    for name in simulated.ARMS:
        before = None
        for samples in SAMPLES:
            errors = [simulated.exact_error(name, seed, samples) for seed in range(seeds)]
            error = float(np.median(errors))
            less = f"; {before / error:.2f} times less" if before else ""
            print(f"{name:<8}{samples:>8} samples: error {error:.5f}{less}", flush=True)
            before = error


def butterworth_error(robot: feasid.Robot, log, cutoff: float, options) -> float:
    """Relative torque error, both sides filtered alike."""
    wide = {"derivative_cutoff": 4 * cutoff, "cutoff": cutoff, "filtering": "equations"}
    missed = total = 0.0
    for run in prepare(log, robot, **wide, **options).runs:
        edge = int(run.rate / cutoff)
        if len(run) < 3 * edge:
            continue
        predicted = feasid.inverse_dynamics(robot, run.q, run.dq, run.ddq)
        a, b = (low_pass(x, cutoff, run.rate)[edge:-edge] for x in (run.tau, predicted))
        missed += float(np.sum((a - b) ** 2))
        total += float(np.sum(a**2))
    return float(np.sqrt(missed / total))


def real_pairs():
    """Name, robot, (training, test) pairs, cut-off of the judge, options."""
    log = datasets.load("kuka_lwr4")
    one, two = (log[log["run"] == f"measurement_{k}"] for k in (1, 2))
    yield "KUKA, the repeat", log.attrs["robot"], [(one, two)], 8.0, {}
    log = datasets.load("staubli_tx40")
    half, robot, options = len(log) // 2, log.attrs["robot"], log.attrs["options"]
    halves = log.iloc[:half], log.iloc[half:]
    yield "TX40, second half from the first", robot, [halves], 15.0, options
    yield "TX40, first half from the second", robot, [halves[::-1]], 15.0, options
    log = datasets.load("unitree_z1")
    number = np.floor(log["t"] / 5.0).astype(int) % 2
    even, odd = log[number == 0], log[number == 1]
    yield "Z1, alternate blocks of 5 s", log.attrs["robot"], [(even, odd), (odd, even)], 8.0, {}
    log = datasets.load("kinova_gen3")
    runs = [log[log["run"] == name] for name in log["run"].unique()]
    left_out = [([r for r in runs if r is not own], own) for own in runs]
    yield "Kinova, one run left out", log.attrs["robot"], left_out, 5.0, {}


def on_real_logs() -> None:
    for what, robot, pairs, cutoff, options in real_pairs():
        errors = []
        for training, test in pairs:
            fit = feasid.fit(training, robot, diagnose=False, **options)
            errors.append(butterworth_error(fit.robot, test, cutoff, options))
        mean = float(np.exp(np.mean(np.log(errors))))
        print(f"{what:<34} {100 * mean:.2f} % at {cutoff:g} Hz", flush=True)


def verdicts(seeds: int) -> None:
    from benchmarks.worlds import (
        CLEAN,
        EXAMPLES,
        RANDOM_TREE,
        coverage,
        draw_seed,
        judge,
        make_world,
    )
    from benchmarks.worlds import predictor as predictions

    for name in (*EXAMPLES, RANDOM_TREE):
        rows = []
        for _ in range(seeds):
            world = make_world(name, CLEAN, draw_seed())
            fit = feasid.fit(world.log, world.robot)
            truth = world.truth.base_parameters(fit.base)
            errors = fit.errors(world.test_log)
            rows.append(
                {
                    "error / truth's": judge(world, predictions(fit.robot)).ratio,
                    "base parameters": np.linalg.norm(fit.beta - truth) / np.linalg.norm(truth),
                    "covered": coverage(world, fit),
                    "called good": float(fit.quality.level == "good"),
                    "real / predicted": errors["all"] / errors.attrs["predicted"]["all"],
                }
            )
        shown(name, rows)
    for what, robot, pairs, _, options in real_pairs():
        for training, test in pairs:
            fit = feasid.fit(training, robot, **options)
            error = fit.errors(test)
            print(
                f"{what:<34} {fit.quality.level:<9} real {100 * error['all']:.2f} %, predicted "
                f"{100 * error.attrs['predicted']['all']:.2f} %",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "what", choices=("simulated", "descriptions", "samples", "real", "verdicts")
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tracking", action="store_true")
    parser.add_argument("--published", action="store_true")
    chosen = parser.parse_args()
    if chosen.what == "simulated":
        in_simulation(chosen.seeds, chosen.tracking, chosen.published)
    elif chosen.what == "descriptions":
        with_wrong_descriptions(chosen.seeds)
    elif chosen.what == "samples":
        with_more_samples(chosen.seeds)
    elif chosen.what == "verdicts":
        verdicts(chosen.seeds)
    else:
        on_real_logs()


if __name__ == "__main__":
    main()
