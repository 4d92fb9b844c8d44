"""Every number of the README: ``python -m benchmarks.readme [--wam] [--write]``.

Prints the blocks between the README's ``<!-- numbers: NAME -->`` marks: "demo", what ``feasid
demo`` prints; "league", from the league's last results (benchmarks/league/results.json);
with --wam "wam", from examples/wam_control.py (two minutes, needs the extra "mujoco"). ``--write``
puts what was printed into the README.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.league.judge import is_negative, is_rejected
from benchmarks.league.page import quiet

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "league" / "results.json"

TOOLS = {
    "description": "URDF with fitted friction",
    "WLS": "weighted least squares",
    "figaroh": "figaroh 1.0.2",
    "mujoco.sysid": "mujoco.sysid 4.0.0",
    "feasid": "feasid",
}
"""Participants of the league that the README shows, and their headings."""


def demo_block() -> str:
    """What ``feasid demo`` prints."""
    command = [sys.executable, "-m", "feasid", "demo"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return f"```text\n{done.stdout.strip()}\n```"


def league_block() -> str:
    """The table of the league and the sentences below it."""
    results = json.loads(RESULTS.read_text())
    by_task: dict[str, dict[str, Any]] = {}
    for x in results["results"]:
        by_task.setdefault(x["task"], {})[x["participant"]] = x
    rows = [["", *TOOLS.values()], ["---"] * (1 + len(TOOLS))]
    for task, label in (
        ("unitree_z1", "Unitree Z1"),
        ("kinova_gen3", "Kinova Gen3"),
        ("kuka_lwr4", "KUKA LWR 4+"),
    ):
        errors = {n: by_task[f"A {task} held-out"].get(n, {}).get("error") for n in TOOLS}
        rows.append([f"{label} (real), torque error on held-out motion", *best(errors, "{:.1%}")])
        known = by_task.get(f"K {task} held-out")
        if known:  # much of the difference above is the delay, which feasid alone looks for
            errors = {n: known.get(n, {}).get("error") for n in TOOLS}
            label = "the same log, corrected for its delay of 30 ms before anybody gets it"
            rows.append([label, *best(errors, "{:.1%}", missing="not run")])
    worlds = {t: x for t, x in by_task.items() if t[0] == "B"}

    foreign = {t: x for t, x in by_task.items() if t[0] == "X"}

    def medians(key: str, tasks: dict[str, dict[str, Any]]) -> dict[str, float | None]:
        values = {n: [x[n][key] for x in tasks.values() if key in x.get(n, {})] for n in TOOLS}
        return {n: float(np.median(v)) if v else None for n, v in values.items()}

    def unphysical(tasks: dict[str, dict[str, Any]]) -> list[str]:
        each = ([x.get(n, {}) for x in tasks.values()] for n in TOOLS)
        return [str(sum(is_rejected(x) or is_negative(x) for x in found)) for found in each]

    real = {t: x for t, x in by_task.items() if t[0] == "A"}
    n, m = len(worlds), len(real)
    rows += [
        [f"{n} simulated robots with hidden parameters: torque error over that of the true model "
         "(median)", *best(medians("ratio", worlds), "{:.3g}")],
        [f"{len(foreign)} simulated robots with effects that nobody models: the same",
         *best(medians("ratio", foreign), "{:.3g}", missing="not run")],
        ["the robots without them: error of 0.3 s rollouts over that of the true model (median)",
         *best(medians("rollout", worlds), "{:.3g}", missing="none")],
        ["unphysical models (MuJoCo's compiler rejects a body, or a joint term is negative), of "
         f"{n} simulated", *unphysical(worlds)],
        [f"the same, of {m} on real logs", *unphysical(real)],
        ["processor time per fit (median)",
         *best(medians("seconds", {t: quiet(x) for t, x in (real | worlds).items()}), "{:.1f} s",
               bold=False)],
    ]  # fmt: skip
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    rolled = sum("rollout" in x.get("figaroh", {}) for x in worlds.values())
    costly = sum("mujoco.sysid" in x for x in worlds.values())
    first = sum(
        min((x for x in done.values() if "error" in x), key=lambda x: x["error"])["participant"]
        == "feasid"
        for done in real.values()
    )
    faults = [x["feasid"] for t, x in by_task.items() if t[0] == "D"]
    honest = sum(x["honest"] for x in faults)
    unknown = sum(x["feasid"]["honest"] for x in foreign.values())
    return (
        f"{table}\n\nRollouts of figaroh: {rolled} of its {n} models, which are inconsistent by "
        f"less than 1e-6. mujoco.sysid ran on {costly} of the {n} simulated robots.\n"
        f"Measured on {results['written']}. {results.get('times', '')}\n"
        f"Over all {m} tasks on real robots feasid has the smallest error in {first}.\n"
        "On simulated UR5 logs with one fault or condition each, its verdict is right in "
        f'{honest} of {len(faults)}: "good" only within twice the true model\'s error.\n'
        f"With effects that nobody models (elastic joints, LuGre friction, hysteresis, cogging) it "
        f"is right in {unknown} of {len(foreign)}."
    )


def best(
    values: dict[str, float | None], form: str, missing: str = "failed", bold: bool = True
) -> list[str]:
    """Cells of a row, the smallest in bold."""
    least = min(v for v in values.values() if v is not None)
    cells = [missing if v is None else form.format(v).replace("%", " %") for v in values.values()]
    smallest = [bold and v == least for v in values.values()]
    return [f"**{c}**" if b else c for c, b in zip(cells, smallest, strict=True)]


def wam_block() -> str:
    """The caption of the README's picture."""
    sys.path.insert(0, str(ROOT / "examples"))
    import wam_control  # type: ignore[import-not-found]

    done = wam_control.experiment()
    errors, shares = done["tracking"], done["share"]
    words = [
        f"{label} {'diverges' if not np.isfinite(errors[m]) else f'{errors[m]:.0f} mrad'}"
        for m, label in (("CAD", "datasheet"), ("OLS", "least squares"), ("feasible", "feasid"))
    ]
    definite = [f"{100 * shares[m]:.0f} %" for m in ("CAD", "OLS", "feasible")]
    return (
        f"*Simulated WAM under computed-torque control. Tracking error: {', '.join(words)}.\n"
        f"Mass matrix positive definite at {', '.join(definite)} of random postures.\n"
        "`python examples/wam_control.py figures`*"
    )


BLOCKS = {"demo": demo_block, "league": league_block, "wam": wam_block}


def in_readme(name: str) -> str:
    """The block as the README has it."""
    found = re.search(rf"<!-- numbers: {name} -->\n(.*?)\n<!-- end -->", README.read_text(), re.S)
    if found is None:
        raise SystemExit(f"README.md has no block <!-- numbers: {name} -->")
    return found[1]


def main() -> None:
    """Print the blocks, and write them where that is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wam", action="store_true", help="simulate the WAM, too (two minutes)")
    parser.add_argument("--write", action="store_true", help="put the blocks into README.md")
    arguments = parser.parse_args()
    for name, make in BLOCKS.items():
        if name == "wam" and not arguments.wam:
            continue
        block, before = make(), in_readme(name)
        print(f"{name}:\n\n{block}\n")
        if arguments.write and block != before:
            mark = f"<!-- numbers: {name} -->\n"
            README.write_text(README.read_text().replace(mark + before, mark + block))


if __name__ == "__main__":
    main()
