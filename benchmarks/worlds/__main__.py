"""Fit and diagnose worlds, and compare what was found with their truths.

``python -m benchmarks.worlds --robot ur5 --fault tilt`` prints a line for each world. With
``--results FILE`` worlds are appended as lines of JSON, without those that are there already, and
``--summary FILE`` prints how often mistakes were found and what the mended fits predict. ``--draw
300`` draws as many worlds, each of one of the robots and one of the faults.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import feasid

from . import CLEAN, EXAMPLES, FAULTS, RANDOM_TREE, World, coverage, judge, make_world, predictor
from .world import draw_seed

Record = dict[str, Any]

CLEAN_LOGS = (CLEAN, "all_rows", "half_lost", "exact", "no_inertials")
"""Worlds whose logs have no mistake, however little their descriptions say."""

NAMES = {
    "gain": ("gain",),
    "tilt": ("tilt", "gravity"),
    "tilt_y": ("tilt", "gravity"),
    "zeros": ("zero",),
    "late": ("delay", "joint-delay"),
    "cable": ("position", "k"),
    "drift": ("warm-up",),
    "load_friction": ("load", "weight", "fl", "fw"),
    "quantised": ("coarse",),
    "stribeck": ("stribeck", "fb"),
    "ripple": ("ripple", "rs"),
    "elastic": ("elastic",),
    "backlash": ("backlash", "unexplained"),
}
"""Codes by which a fault is named, and symbols of the joint terms that a fit chose."""

HARMFUL = 1.3
"""Times the clean log's test error from which a fault must be found, and below which its mended fit
must come."""

HARM = 1.02
"""Times the error of a fit beyond which following advice, or taking mistakes out, did harm."""

WRONG = 2.0
"""Times the truth's error from which "good" is no honest verdict."""


def main() -> None:
    """Make worlds, fit and diagnose them, and print a line for each, or a summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worlds", description=__doc__)
    robots = [*EXAMPLES, RANDOM_TREE]
    parser.add_argument("--robot", nargs="+", default=["ur5"], choices=robots)
    parser.add_argument("--fault", nargs="+", default=[CLEAN], choices=list(FAULTS))
    parser.add_argument("--seed", type=int, help="drawn where left out")
    parser.add_argument("--worlds", type=int, default=1, help="seeds per robot")
    parser.add_argument("--draw", type=int, default=0, help="worlds of robots and faults drawn")
    parser.add_argument("--results", type=Path, help="file to which lines of JSON are appended")
    parser.add_argument("--summary", nargs="+", type=Path, help="print what files hold and end")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    options = parser.parse_args()
    if options.list:
        for name, fault in FAULTS.items():
            print(f"{name:16}{fault.text}")
    elif options.summary:
        records = [r for path in options.summary for r in read(path)]
        print(summary(records))
    else:
        for record in draw(options) if options.draw else campaign(options):
            print(_line(record), flush=True)


def read(path: Path) -> list[Record]:
    """Records of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def campaign(options: argparse.Namespace) -> Iterator[Record]:
    """Records of all worlds that a results file does not hold yet.

    Worlds of one robot and number share their seed, so that they differ in the fault alone.
    """
    done = read(options.results) if options.results else []
    for number in range(options.worlds):
        for robot in options.robot:
            own = [r for r in done if (r["robot"], r["number"]) == (robot, number)]
            seed = own[0]["seed"] if own else options.seed
            seed = draw_seed() if seed is None else seed
            for fault in options.fault:
                if fault in [r["fault"] for r in own]:
                    continue
                record = {"number": number, **examine(make_world(robot, fault, seed))}
                if options.results:
                    append(options.results, record)
                yield record


def draw(options: argparse.Namespace) -> Iterator[Record]:
    """Records of worlds whose robot, fault and seed are drawn, as many as a file does not hold."""
    rng = np.random.default_rng(options.seed)
    for number in range(len(read(options.results)) if options.results else 0, options.draw):
        robot, fault = str(rng.choice(options.robot)), str(rng.choice(options.fault))
        record = {"number": number, **examine(make_world(robot, fault, draw_seed()))}
        if options.results:
            append(options.results, record)
        yield record


def append(path: Path, record: Record) -> None:
    """Add a record to a file."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def examine(world: World) -> Record:
    """What fit and diagnosis make of a world; errors are those of the test motion."""
    robot, started = world.robot, time.process_time()
    fit = feasid.fit(world.log, robot)
    fitted = time.process_time()
    found = feasid.diagnose(world.log, robot)
    diagnosed = time.process_time()
    plain = advised = fit
    if fit.calibration.confirmed or any(note.code == "term-added" for note in fit.notes):
        plain = feasid.fit(world.log, robot, calibration=None, diagnose=False)
    if found.options:
        advised = feasid.fit(world.log, robot, diagnose=False, **found.options)
    scores = {
        name: judge(world, predictor(f.robot)).error
        for name, f in (("plain", plain), ("default", fit), ("advised", advised))
    }
    truth = world.truth.base_parameters(fit.base)
    return {
        "robot": world.name,
        "fault": world.fault_name,
        "seed": world.seed,
        "truth": judge(world, predictor(fit.robot)).truth_error,
        **scores,
        "base": float(np.linalg.norm(fit.beta - truth) / np.linalg.norm(truth)),
        "coverage": coverage(world, fit),
        "quality": fit.quality.level,
        "told": float(np.linalg.norm(fit.quality.errors.model)),
        "reasons": [r.code for r in fit.quality.reasons],
        "confirmed": [_entry(world, e) for e in fit.calibration.confirmed],
        "findings": [[f.code, f.level, *f.joints] for f in found if f.level != "note"],
        "notes": [[f.code, *f.joints] for f in found if f.level == "note"],
        "options": sorted(found.options),
        "terms": sorted({s for drive in fit.robot.drives for s in drive.symbols}),
        "seconds": [fitted - started, diagnosed - fitted],
    }


def _entry(world: World, entry: Any) -> Record:
    """A mistake that a fit took out, with how many deviations it is from the truth."""
    kind, joint, truth = entry.at.kind, entry.at.joint, world.truth
    known = {
        "zero": lambda: -truth.joint_zeros[joint],
        "gain": lambda: np.log(truth.gains[joint]),
        "delay": lambda: world.fault.delay,
        "joint-delay": lambda: 0.0,
    }
    off = None
    if kind in known:
        off = float((entry.value[0] - known[kind]()) / entry.deviation[0])
    value, deviation = entry.value.tolist(), entry.deviation.tolist()
    return {"kind": kind, "joint": entry.joint, "value": value, "sd": deviation, "off": off}


def _line(record: Record) -> str:
    errors = ", ".join(
        f"{name} {record[name] / record['truth']:.3f}" for name in ("plain", "default", "advised")
    )
    taken = ", ".join(f"{e['kind']} {e['joint']}".strip() for e in record["confirmed"]) or "nothing"
    told = ", ".join(" ".join(f) for f in record["findings"]) or "nothing"
    return (
        f"--robot {record['robot']} --fault {record['fault']} --seed {record['seed']}: error over "
        f"the truth's {errors}; base parameters {record['base']:.4f} off, inside their intervals "
        f"{record['coverage']:.0%}; {record['quality']}; taken out: {taken}; findings: {told}; "
        f"{record['seconds'][0]:.1f} s and {record['seconds'][1]:.1f} s"
    )


def summary(records: Iterable[Record]) -> str:
    """Rates over clean logs and by fault."""
    records = [*records]
    clean = [r for r in records if r["fault"] in CLEAN_LOGS]
    lines = []
    if clean:
        alarms = sum(any(f[1] == "error" for f in r["findings"]) for r in clean)
        mends = sum(bool(r["confirmed"]) for r in clean)
        good = sum(r["quality"] == "good" for r in clean)
        lines += [
            f"{len(clean)} clean logs: {alarms} with an error-level finding, {mends} with "
            f"something taken out, {sum(bool(r['options']) for r in clean)} with advice, {good} "
            "good",
            f"  after / before at most {max(r['default'] / r['plain'] for r in clean):.3f}, with "
            f"advice {max(r['advised'] / r['default'] for r in clean):.3f}",
        ]
        for robot in dict.fromkeys(r["robot"] for r in clean):
            own = [r for r in clean if r["robot"] == robot]
            ratio = np.median([r["default"] / r["truth"] for r in own])
            base, cover = np.median([r["base"] for r in own]), np.mean([r["coverage"] for r in own])
            lines.append(
                f"  {robot:8}{len(own):3} logs: error over the truth's {ratio:.3f}, base "
                f"parameters {base:.4f} off, coverage {cover:.3f}"
            )
    twins = {(r["robot"], r["seed"]): r["default"] for r in records if r["fault"] == CLEAN}
    faulty = [r for r in records if r["fault"] not in CLEAN_LOGS]
    lines += _fault_lines(faulty, twins) if faulty else []
    wrong = [r for r in records if r["quality"] == "good" and r["default"] > WRONG * r["truth"]]
    named = ", ".join(f"{r['robot']} {r['fault']}" for r in wrong)
    lines.append(
        f"{len(records) - len(wrong)} of {len(records)} verdicts honest: not good where the error "
        f"is above {WRONG:g} times the truth's" + (f"; but {named}" if wrong else "")
    )
    harm = [
        ("advice", [r["advised"] / r["default"] for r in records if r["options"]]),
        ("what was taken out", [r["default"] / r["plain"] for r in records if r["confirmed"]]),
    ]
    lines += [
        f"{what} in {len(ratios)} fits, more than {HARM:g} times as wrong with it "
        f"{sum(x > HARM for x in ratios)}, at most {max(ratios):.3f} times"
        for what, ratios in harm
        if ratios
    ]
    off = [e["off"] for r in records for e in r["confirmed"] if e["off"] is not None]
    if off:
        inside = np.mean(np.abs(off) < 2)
        lines.append(f"{len(off)} zeros, gains, delays: {inside:.0%} within 2 deviations")
    seconds = np.array([r["seconds"] for r in records])
    lines.append(f"seconds of a fit and a diagnosis, median {np.median(seconds, axis=0).round(1)}")
    return "\n".join(lines)


def _fault_lines(records: list[Record], twins: dict[tuple[str, int], float]) -> list[str]:
    """How often faults were named, and errors over the clean twin's, or the truth's without one."""
    lines = [f"{'fault':14}{'logs':>5}{'harmed':>7}{'found':>6}  before, after and advised over"]
    total = np.zeros(3, dtype=int)
    for fault in dict.fromkeys(r["fault"] for r in records):
        own = [r for r in records if r["fault"] == fault]
        usual = np.array([twins.get((r["robot"], r["seed"]), r["truth"]) for r in own])
        ways = ("plain", "default", "advised")
        ratios = np.array([[r[name] for name in ways] for r in own]) / usual[:, None]
        harmed = ratios[:, 0] >= HARMFUL
        told = (
            [e["kind"] for e in r["confirmed"]] + [f[0] for f in r["findings"]] + r["terms"]
            for r in own
        )
        named = np.array([bool({*NAMES.get(fault, ())} & {*kinds}) for kinds in told])
        found = f"{(named & harmed).sum()}/{named.sum()}"
        shown = "; ".join("{:.2f} {:.2f} {:.2f}".format(*row) for row in ratios)
        lines.append(f"{fault:14}{len(own):5}{harmed.sum():7}{found:>6}  {shown}")
        if fault in NAMES:
            mended = ratios[:, 2] <= HARMFUL
            total += [harmed.sum(), (harmed & named).sum(), (harmed & mended).sum()]
    lines.append("of {} harmful mistakes {} named, {} mended by fit and advice".format(*total))
    return lines


if __name__ == "__main__":
    main()
