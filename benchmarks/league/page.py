"""The page docs/league.md and its figures, from the protocol (protocol.md) and the results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.league.judge import NAMEABLE, is_negative, is_rejected
from benchmarks.worlds import FAULTS

Values = dict[str, dict[str, Any]]
"""Results by task and participant."""

EFFECTS = Path(__file__).parent / "effects.json"
"""What `benchmarks/effects.py` measured."""

RESAMPLED = 2000
"""Draws of the bootstrap of a median; a tenth leaves its ends uncertain by a few percent."""

REASONS = {
    "A double_pendulum faster": "the motion to predict is three times as fast as the fitted one, "
    "which tells little of what counts there: `prior=None` has 271 %, a prior of weight 300 39 %"
}
"""Why feasid is not first, by the beginning of task and figure; what has none says so."""


def write(results: dict[str, Any], docs: Path, how: str) -> None:
    """Write ``league.md`` and a figure per track into the folder of the documentation."""
    table: Values = defaultdict(dict)
    for x in results["results"]:
        table[x["task"]][x["participant"]] = x
    names = [n for n, error in results["installed"].items() if not error]
    parts = [HEAD]
    sections = {
        "Where feasid is not first": _losses,
        "A: torque of real motions": _track_a, "B: hidden truth": _track_b, "C: rollouts": _track_c,
        "D: faults": _track_d, "E: cost": _track_e, "K: faults that everybody is told": _track_k,
        "X: effects that nobody models": _track_x,
    }  # fmt: skip
    for title, make in sections.items():
        parts.append(f"## {title}\n\n{make(table, names, docs / 'figures')}")
    if EFFECTS.exists():
        parts.append(_effects(json.loads(EFFECTS.read_text())))
    parts += [_conditions(results, table, how), (Path(__file__).parent / "protocol.md").read_text()]
    (docs / "league.md").write_text("\n\n".join(p.strip() for p in parts) + "\n")


def _effects(columns: dict[str, Any]) -> str:
    """What fits make of one effect at a time: robots that thresholds were chosen on, and others."""
    chosen, blind = columns["chosen"], columns["blind"]
    text = (
        "## F: one effect at a time\n\n"
        "Torque error of feasid on a new motion divided by that of the same robot's clean log, "
        "and that of the true model (noise, and friction near standstill that no law resolves): "
        "geometric means over robots, and the largest. The thresholds of the search were chosen on "
        f"packaged logs and on simulated arms. Left: robots of these ({', '.join(chosen['robots'])}"
        f", {chosen['date']}); right: robots that were not used, judged once with the final "
        f"thresholds ({', '.join(blind['robots'])}, {blind['date']}). "
        "`python benchmarks/effects.py` draws seeds anew.\n\n"
        "| effect | robots of the choice | largest | true model | other robots | largest "
        "| true model |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for name, here in chosen["means"].items():
        cells = [x[k] for x in (here, blind["means"][name]) for k in ("default", "worst", "truth")]
        text += f"| {name} | {' | '.join(f'{x:.2f}' for x in cells)} |\n"
    return text


HEAD = """\
# The league

All methods run on the same real logs, and on simulated robots whose true parameters were hidden.
The [protocol](#protocol) and the conditions stand below the results.

```{include} ../README.md
:start-after: "<!-- numbers: league -->"
:end-before: "<!-- end -->"
```
"""
"""The page's first screen: the table of the README."""


def _conditions(results: dict[str, Any], table: Values, how: str) -> str:
    tracks = {k: sum(1 for t in table if t[0] == k) for k in "ABDKX"}
    missing = [f"{n} {e.partition(': ERROR')[0]}" for n, e in results["installed"].items() if e]
    spent = sum(x["seconds"] for x in results["results"]) / 60
    command = f"python -m benchmarks.league {how}".strip()
    file = f"benchmarks/league/results{'_quick' if how else ''}.json"
    return (
        f"## Conditions\n\n`{command}` writes this page from `{file}`, last filled on "
        f"{results['written']} ({results['machine']}): {tracks['A']} tasks on real logs, "
        f"{tracks['B']} hidden-truth worlds, {tracks['D']} worlds with one fault or condition, "
        f"{tracks['K']} tasks with a known fault, {tracks['X']} worlds with foreign effects, "
        f"{spent:.0f} minutes of processor time of the participants. Not taking part: "
        f"{'; '.join(missing) or 'none'}. {results.get('times', '')} "
        f"{results.get('times_since', '')}".rstrip()
    )


def _track_a(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "A"}
    text = "Relative torque error on what was not fitted, in percent; the best in bold.\n\n"
    text += _rows(tasks, names, "error", lambda v: f"{100 * v:.2f}")
    over = defaultdict(list)
    for found in tasks.values():
        good = {n: x["error"] for n, x in found.items() if "error" in x}
        for n, value in good.items():
            over[n].append(value / min(good.values()))
    _strip(over, figures / "league_a.svg", "error over the best participant's")
    counts = [
        ", ".join(f"{n} {k}" for n in names if (k := _count(tasks, n, test))) or "none"
        for test in (is_rejected, is_negative)
    ]
    return (
        f"{text}\n\nModels on these logs that MuJoCo's compiler rejects: {counts[0]}. Models "
        f"with a negative armature, damping or friction loss, which MuJoCo accepts: {counts[1]}. "
        f"{_not_compiled(tasks)}\n\n"
        "![Errors on real logs over the best participant's](figures/league_a.svg)"
    )


def _track_b(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "B"}
    ratio, bound = (_values(tasks, names, k) for k in ("ratio", "efficiency"))
    held = _values(tasks, names, "coverage")
    text = (
        "Medians with 95 % intervals over the seeds (bootstrap of the median). Error: torque "
        "error on a faster motion, divided by that of the true model. Parameters: error over the "
        "Cramer-Rao bound, which an "
        "efficient estimator reaches with 1. Intervals: share of the 95 % intervals of base "
        "parameters that hold the truth.\n\n"
        "| participant | worlds | failed | error | largest | parameters | intervals |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for n in names:
        entered = sum(n in x for x in tasks.values())
        mean = f"{np.mean(held[n]):.0%}" if held[n] else "none given"
        largest = f"{max(ratio[n]):.3g}" if ratio[n] else "-"
        text += (
            f"| {n} | {entered} | {entered - len(ratio[n])} | {_median(ratio[n])} | {largest} | "
            f"{_median(bound[n])} | {mean} |\n"
        )
    _strip(ratio, figures / "league_b.svg", "torque error divided by the true model's")
    return (
        text
        + "\n![Torque errors divided by the true model's](figures/league_b.svg)\n\n"
        + "Error divided by the true model's in each world (the best in bold):\n\n"
        + _rows(tasks, names, "ratio", lambda v: f"{v:.3f}")
    )


def _track_c(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "B"}
    values = _values(tasks, names, "rollout")
    text = (
        "| participant | rollout error divided by the true model's | largest "
        "| rejected by MuJoCo's compiler | negative joint terms |\n"
        "|---|---|---|---|---|\n"
    )
    for n in names:
        counts = " | ".join(str(_count(tasks, n, test)) for test in (is_rejected, is_negative))
        largest = f"{max(values[n]):.3g}" if values[n] else "-"
        text += f"| {n} | {_median(values[n])} | {largest} | {counts} |\n"
    text += f"\n{_not_compiled(tasks)}\n"
    _strip(
        values, figures / "league_c.svg", "position error of rollouts divided by the true model's"
    )
    return (
        text + "\n![Rollout errors divided by the true model's](figures/league_c.svg)\n\nIn each "
        "world:\n\n" + _rows(tasks, names, "rollout", lambda v: f"{v:.3f}")
    )


def _track_d(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "D"}
    here = [n for n in names if any(n in x for x in tasks.values())]
    text = (
        "A UR5, one log each. Found: what feasid names of the faults' list (the others have no "
        "such answer); verdict: that of feasid; then everybody's error divided by the true "
        "model's.\n\n"
        f"| fault | found | named | verdict | honest | {' | '.join(here)} |\n"
        f"|---{'|---' * (4 + len(here))}|\n"
    )
    for task, found in tasks.items():
        fault, own = task.split()[1], found.get("feasid", {})
        named = ("yes" if fault in own.get("found", ()) else "no") if fault in NAMEABLE else "-"
        honest = {True: "yes", False: "no"}.get(own.get("honest"), "-")
        cells = [_cell(found.get(n), "ratio", "{:.3g}".format) for n in here]
        seen = ", ".join(own.get("found", ())) or "nothing"
        text += (
            f"| {FAULTS[fault].text} | {seen} | {named} | {own.get('verdict', '-')} | {honest} | "
            f"{' | '.join(cells)} |\n"
        )
    asked = [t for t in tasks if t.split()[1] in NAMEABLE and "found" in tasks[t].get("feasid", {})]
    right = sum(t.split()[1] in tasks[t]["feasid"]["found"] for t in asked)
    honest = [x["feasid"]["honest"] for x in tasks.values() if "honest" in x.get("feasid", {})]
    _strip(
        _values(tasks, here, "ratio"),
        figures / "league_d.svg",
        "torque error divided by the true model's",
    )
    return (
        f"{text}\nfeasid names {right} of {len(asked)} faults; its verdict is honest in "
        f"{sum(honest)} of {len(honest)} logs.\n\n"
        "![Errors under faults divided by the true model's](figures/league_d.svg)"
    )


def _track_e(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: quiet(x) for t, x in table.items() if t[0] in "AB"}
    seconds, memory = (_values(tasks, names, k) for k in ("seconds", "megabytes"))
    text = (
        "Processor time and peak memory of a participant's process on tasks of tracks A and B, "
        "start of Python and reading of files included.\n\n"
        "| participant | seconds | largest | peak memory [MB] |\n|---|---|---|---|\n"
    )
    for n in (n for n in names if seconds[n]):
        text += f"| {n} | {_median(seconds[n])} | {max(seconds[n]):.3g} | {max(memory[n]):.0f} |\n"
    _strip(seconds, figures / "league_e.svg", "seconds of processor time")
    return text + "\n![Processor time](figures/league_e.svg)"


def quiet(found: dict[str, Any]) -> dict[str, Any]:
    """What ran on a machine that nothing else used: its processor times can be compared."""
    return {n: x for n, x in found.items() if not x.get("busy")}


def _track_k(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "K"}
    logs = {t: x for t, x in tasks.items() if not any("ratio" in y for y in x.values())}
    worlds = {t: x for t, x in tasks.items() if t not in logs}
    return (
        "The fault is taken out of the log before anybody gets it, or told as gravity: what is "
        "left is the difference of the methods. The torques of the Z1's log come 30 ms later for "
        "everybody, also for the judge; relative torque error in percent:\n\n"
        f"{_rows(logs, names, 'error', lambda v: f'{100 * v:.2f}')}\n"
        "A UR5 whose delay, gains, zeros or tilt are known; error divided by the true model's:\n\n"
        f"{_rows(worlds, names, 'ratio', lambda v: f'{v:.3f}')}"
    )


def _track_x(table: Values, names: list[str], figures: Path) -> str:
    tasks = {t: x for t, x in table.items() if t[0] == "X"}
    verdicts = [x["feasid"] for x in tasks.values() if "verdict" in x.get("feasid", {})]
    honest = sum(x["honest"] for x in verdicts)
    good = sum(x["verdict"] == "good" for x in verdicts)
    return (
        "Worlds with an effect of which no participant has a column: elastic joints, friction of "
        "bristles (LuGre), gears with hysteresis, cogging in narrow pulses. Error divided by that "
        "of the true model, which knows the effect; it takes elastic joints as rigid, so that a "
        "fit can have less.\n\n"
        f"{_rows(tasks, names, 'ratio', lambda v: f'{v:.3f}')}\n"
        f"feasid calls {good} of {len(verdicts)} fits good, and its verdict is honest in {honest}."
    )


def _losses(table: Values, names: list[str], figures: Path) -> str:
    text = "| task | figure | feasid | first | its figure | why |\n|---|---|---|---|---|---|\n"
    count = 0
    for task, found in table.items():
        judged = "ratio" if any("ratio" in x for x in found.values()) else "error"
        keys = {"A": ["error"], "B": ["ratio", "rollout"], "K": [judged], "X": ["ratio"]}
        for key in keys.get(task[0], []):
            good = {n: x[key] for n, x in found.items() if key in x}
            first = min(good, key=lambda n: good[n], default="feasid")
            if not good or first == "feasid":
                continue
            count += 1
            own = f"{good['feasid']:.4g}" if "feasid" in good else "failed"
            why = next(
                (w for k, w in REASONS.items() if f"{task} {key}".startswith(k)), "not explained"
            )
            text += f"| {task} | {key} | {own} | {first} | {good[first]:.4g} | {why} |\n"
    wrong = [
        f"{t[2:]} ({x['feasid']['ratio']:.3g})"
        for t, x in table.items()
        if t[0] in "DX" and x.get("feasid", {}).get("honest") is False
    ]
    return (
        f"The verdict of feasid is wrong in {len(wrong)} logs of tracks D and X (its error over "
        f"the true model's): {', '.join(wrong) or 'none'}.\n\n"
        f"feasid has not the best value in {count} of the figures of tracks A, B, C, K and X.\n\n"
        f"{text}"
    )


def _values(tasks: Values, names: list[str], key: str) -> dict[str, list[float]]:
    return {n: [x[n][key] for x in tasks.values() if key in x.get(n, {})] for n in names}


def _count(tasks: Values, name: str, test: Callable[[dict[str, Any]], bool]) -> int:
    return sum(test(found[name]) for found in tasks.values() if name in found)


def _not_compiled(tasks: Values) -> str:
    """That results hold models which were not given to the compiler, if any do."""
    every = (found for x in tasks.values() for found in x.values())
    some = any(is_negative(found) and "negative" not in found for found in every)
    return "In these results models with negative terms were not compiled or simulated." * some


def _cell(found: dict[str, Any] | None, key: str, show: Any) -> str:
    if found is None:
        return ""
    if key in found:
        return show(found[key])
    if "failure" in found:
        return "failed"
    return "rejected" if is_rejected(found) else "negative" if is_negative(found) else "none"


def _rows(tasks: Values, names: list[str], key: str, show: Any) -> str:
    text = f"| task | {' | '.join(names)} |\n|---{'|---' * len(names)}|\n"
    for task, found in tasks.items():
        best = min((x[key] for x in found.values() if key in x), default=None)
        cells = [_cell(found.get(n), key, show) for n in names]
        cells = [
            f"**{c}**" if found.get(n, {}).get(key, np.nan) == best else c
            for n, c in zip(names, cells, strict=True)
        ]
        text += f"| {task[2:]} | {' | '.join(cells)} |\n"
    return text


def _median(values: list[float]) -> str:
    """Median and its 95 % interval."""
    if not values:
        return "-"
    x = np.array(values)
    draws = np.random.default_rng(0).choice(x, (RESAMPLED, len(x)))
    low, high = np.percentile(np.median(draws, axis=1), (2.5, 97.5))
    return f"{np.median(x):.3g} ({low:.3g} to {high:.3g})"


def _strip(values: dict[str, list[float]], path: Path, label: str) -> None:
    """A point for each task, the median and its 95 % interval by participant, log scale."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    shown = [n for n in values if any(np.isfinite(values[n]))]
    for k, name in enumerate(shown):
        x = np.array(values[name])
        x = x[np.isfinite(x)]
        axes.plot(k + np.linspace(-0.2, 0.2, len(x)), x, "o", ms=4, alpha=0.5, color="C0")
        draws = np.median(np.random.default_rng(0).choice(x, (RESAMPLED, len(x))), axis=1)
        low, high = np.percentile(draws, (2.5, 97.5))
        axes.vlines(k, low, high, color="C1", lw=2)
        axes.hlines(np.median(x), k - 0.3, k + 0.3, color="C1", lw=2)
    axes.set_xticks(range(len(shown)), shown)
    axes.set_yscale("log")
    axes.set_ylabel(label, fontsize=8)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
