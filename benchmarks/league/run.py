"""Participants in processes and virtual environments of their own; docs/league.md describes it.

python -m benchmarks.league --quick          # a few worlds and logs, then the page
nice -n 5 python -m benchmarks.league        # all of it; run it again to go on after a stop
python -m benchmarks.league --page           # the page of the results that there are
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.league import page
from benchmarks.league.judge import judge_answer
from benchmarks.league.tasks import (
    GIGABYTES,
    LOGS,
    SECONDS,
    SPLITS,
    Task,
    known_log_task,
    known_world_task,
    log_task,
    world_task,
)
from benchmarks.worlds import FAULTS, FOREIGN, RANDOM_TREE, draw_seed, make_world

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RESULTS = HERE / "results.json"
BASICS = ("pin", "pandas", "scipy")
WALL = 6
"""A participant is ended after so many times its processor time on the clock."""


@dataclass(frozen=True)
class Participant:
    """A program of the folder `participants`, its variant, and what pip installs for it.

    Those that are `costly` run last, and not in track D, whose question they do not answer.
    """

    name: str
    program: str
    variant: tuple[str, ...]
    environment: str
    requirements: tuple[str, ...]
    costly: bool = False


PARTICIPANTS = (
    Participant("feasid", "use_feasid", ("defaults",), "feasid", (str(REPOSITORY),)),
    Participant("Sousa 2014", "use_feasid", ("published",), "feasid", (str(REPOSITORY),)),
    Participant("WLS", "linear", ("wls",), "basics", BASICS),
    Participant("WLS signs", "linear", ("signs",), "basics", BASICS),
    Participant("description", "linear", ("description",), "basics", BASICS),
    Participant("figaroh", "use_figaroh", (), "figaroh", ("figaroh==1.0.2", *BASICS)),
    Participant("figaroh links", "use_figaroh", ("links",), "figaroh",
                ("figaroh==1.0.2", *BASICS)),
    Participant("mujoco.sysid", "use_mujoco_sysid", (), "sysid",
                ("mujoco[sysid]==4.0.0", *BASICS), costly=True),
    Participant("sysid sensors", "use_mujoco_sysid", ("sensors",), "sysid",
                ("mujoco[sysid]==4.0.0", *BASICS), costly=True),
    Participant("FloBaRoID", "", (), "flobaroid", ("FloBaRoID",)),
)  # fmt: skip
ROBOTS = ("panda", "ur5", "z1", "xarm7", "so101", RANDOM_TREE)
QUICK_LOGS, QUICK_ROBOTS = LOGS[:1], ("ur5", RANDOM_TREE)
QUICK_FAULTS = ("none", "tilt", "late", "stribeck")
KNOWN_FAULTS = ("late", "gain", "zeros", "tilt")
"""Faults that are taken out for everybody in track K."""
KNOWN_DELAY = 0.03
"""What the torques of the packaged log of the Z1 are ahead of its motion [s]."""
FOREIGN_ROBOTS = ("panda", "ur5", "xarm7")


def make_environment(participant: Participant, folder: Path) -> str:
    """Install a participant's requirements; returns what went wrong, or nothing."""
    home, mark = folder / participant.environment, " ".join(participant.requirements)
    note = home / "installed.txt"
    if note.is_file() and note.read_text() == mark:
        return ""
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    command = [
        str(home / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        *participant.requirements,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
        return "does not install from a registry: " + (errors or ["pip failed"])[-1]
    note.write_text(mark)
    return ""


def run_participant(
    participant: Participant, python: Path, task: Task, written: Path
) -> dict[str, Any]:
    """One participant on a written task: figures, or how it failed; processor time, memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))

    with tempfile.TemporaryDirectory() as name:
        told, out = Path(name) / "task", Path(name) / "out"
        shutil.copytree(written, told)
        out.mkdir()
        program = HERE / "participants" / f"{participant.program}.py"
        command = [str(python), str(program), *participant.variant, str(told), str(out)]
        environment = {"PATH": os.defpath, "HOME": name, "OPENBLAS_NUM_THREADS": "1",
                       "OMP_NUM_THREADS": "1"}  # fmt: skip
        with open(Path(name) / "stderr", "w+") as errors:
            process = subprocess.Popen(command, cwd=name, env=environment, preexec_fn=limit,
                                       stdout=subprocess.DEVNULL, stderr=errors)  # fmt: skip
            timer = threading.Timer(WALL * SECONDS, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = code = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            last = ([x for x in errors.read().splitlines() if x.strip()] or [""])[-1]
        out_of = {"seconds": usage.ru_utime + usage.ru_stime, "megabytes": usage.ru_maxrss / 1024}
        if code:
            why = (
                f"over {SECONDS} s" if out_of["seconds"] >= SECONDS - 1 else f"exit {code}: {last}"
            )
            return out_of | {"failure": why.replace(name, "")}
        try:
            return out_of | judge_answer(task, out)
        except (ValueError, KeyError, OSError, RuntimeError) as error:
            return out_of | {"failure": f"no valid answer: {error}".replace(name, "")}


def planned(quick: bool, seeds: dict[str, int]) -> Iterator[tuple[str, Callable[[], Task | None]]]:
    """Names and makers of the tasks; seeds are drawn once and kept with the results."""
    logs, robots = (QUICK_LOGS, QUICK_ROBOTS) if quick else (LOGS, ROBOTS)
    rounds = 1 if quick else 4
    faults = QUICK_FAULTS if quick else tuple(f for f in FAULTS if f not in FOREIGN)

    def seed(key: str) -> int:
        return seeds.setdefault(key, draw_seed())

    for k in range(rounds):
        for robot in robots:
            number = seed(f"B {robot} {k}")
            yield f"B {robot} {k}", lambda r=robot, n=number: world_task(make_world(r, seed=n))
    for log in logs:
        for split in SPLITS[:1] if quick else SPLITS:
            yield f"A {log} {split}", lambda log=log, split=split: log_task(log, split)
    for fault in faults:
        number = seed(f"D {fault}")
        yield f"D {fault}", lambda f=fault, n=number: world_task(make_world("ur5", f, n), "D")
    for split in SPLITS:
        yield (
            f"K unitree_z1 {split}",
            lambda split=split: known_log_task("unitree_z1", split, KNOWN_DELAY),
        )
    for fault in KNOWN_FAULTS:
        number = seed(f"K {fault}")
        yield f"K {fault}", lambda f=fault, n=number: known_world_task(make_world("ur5", f, n))
    for fault in () if quick else ("elastic", *FOREIGN):
        for robot in FOREIGN_ROBOTS:
            number = seed(f"X {fault} {robot}")
            yield (
                f"X {fault} {robot}",
                lambda r=robot, f=fault, n=number: world_task(make_world(r, f, n), "X"),
            )


def main() -> None:
    """Run what is missing of the league and write the page."""
    parser = argparse.ArgumentParser("python -m benchmarks.league", None, __doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="few tasks, into results_quick.json")
    parser.add_argument("--tracks", default="BADKX", help="in this order; C, E come with B, A")
    parser.add_argument("--participants", nargs="+", default=[p.name for p in PARTICIPANTS])
    parser.add_argument("--page", action="store_true", help="write the page and end")
    parser.add_argument("--environments", type=Path, default=HERE / "environments")
    asked = parser.parse_args()
    path = RESULTS.with_name("results_quick.json") if asked.quick else RESULTS
    results = {"seeds": {}, "installed": {}, "results": []}
    if path.is_file():
        results = json.loads(path.read_text())
    if not asked.page:
        run_league(asked, results, path)
    page.write(results, REPOSITORY / "docs", "--quick" if asked.quick else "")


def run_league(asked: argparse.Namespace, results: dict[str, Any], path: Path) -> None:
    """Install and run the participants one after another; results are saved after each."""
    environments = asked.environments.absolute()
    results["machine"] = f"{platform.machine()}, CPython {platform.python_version()}"
    entered = [p for p in PARTICIPANTS if p.name in asked.participants]
    for each in entered:
        results["installed"][each.name] = make_environment(each, environments)
        print(f"{each.name:14} {results['installed'][each.name] or 'installed'}", flush=True)
    done = {(x["task"], x["participant"]) for x in results["results"]}
    tasks = [x for x in planned(asked.quick, results["seeds"]) if x[0][0] in asked.tracks]
    tasks.sort(key=lambda x: asked.tracks.index(x[0][0]))
    for costly in (False, True):
        some = [p for p in entered if p.costly == costly and not results["installed"][p.name]]
        for name, make in tasks:
            missing = [p for p in some if (name, p.name) not in done]
            if (costly and name[0] in "DX") or not missing or (task := make()) is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                written = Path(folder) / "task"
                task.write(written)
                for each in missing:
                    python = environments / each.environment / "bin" / "python"
                    found = run_participant(each, python, task, written)
                    results["results"].append({"task": name, "participant": each.name, **found})
                    save(results, path)
                    figure = found.get("failure") or f"{found.get('ratio', found['error']):.4g}"
                    said = f"{name:32} {each.name:14} {found['seconds']:7.1f} s  {figure}"
                    print(said, flush=True)


def save(results: dict[str, Any], path: Path) -> None:
    """Write the results so that a stop leaves either the earlier ones or these."""
    results["written"] = time.strftime("%Y-%m-%d")
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1))
    shutil.move(partial, path)


if __name__ == "__main__":
    sys.exit(main())
