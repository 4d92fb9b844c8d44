"""The same fit in every environment: locales, switches, processes, homes, versions and names.

    python -m benchmarks.environments [--only oldest,newest] [--write]

A log is fitted, saved, read, written, reported, printed, turned into code and put into a store once
as usual and once in each environment, by a process of its own. Numbers and files are equal to the
bit; with other versions of NumPy and pandas torques are equal to 1e-6. Names of files, joints and
robots that Windows and macOS treat otherwise are used in place of plain ones: all is as with plain
names, or refused with the name.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import unicodedata
import venv
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

CLOSE = 1e-6
"""Relative difference of torques with other versions."""
OLDEST = ("numpy==2.0.*", "scipy==1.13.*", "pandas==2.2.2", "cvxpy==1.6.*", "clarabel==0.9.*",
          "scs==3.2.7", "pyarrow==16.*")  # fmt: skip
NEWEST = ("numpy", "scipy", "pandas", "cvxpy", "clarabel", "scs", "pyarrow")
SAMPLES = 400


def job(folder, number=0):
    """What is compared: digests of what was fitted and written, and the torques."""
    import numpy as np

    import feasid

    folder, out = Path(folder), Path(folder) / f"out_{os.getpid()}_{number}"
    out.mkdir()
    fit = feasid.fit(folder / "log.csv", folder / "arm.urdf")
    fit.save(out / "fit.feasid")
    fit = feasid.load(out / "fit.feasid")
    fit.write(out / "arm.urdf", force=True)
    fit.export_c(out / "arm.c")
    fit.report(out / "fit.html")
    store = feasid.LogStore(out / "store", folder / "arm.urdf")
    (record,) = store.add(folder / "log.csv", "a \N{GREEK SMALL LETTER BETA}", "2026-11-02")
    said = [str(fit), *(f"{d:.6g}" for d in fit.delta), fit.certificate.verify()]
    written = [(out / name).read_text("utf-8") for name in ("arm.urdf", "arm.c", "fit.html")]
    said = "\n".join([*map(str, said), *written, str(store.table)])
    for changing in (str(out), *re.findall(r"2\d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?", said)):
        said = said.replace(changing, "")
    q = np.random.default_rng(0).uniform(-1, 1, (3, 50, fit.robot.dof))
    return {
        "bits": hashlib.sha256(fit.delta.tobytes()).hexdigest(),
        "record": hashlib.sha256(record.read_bytes()).hexdigest(),
        "words": hashlib.sha256(said.encode()).hexdigest(),
        "torques": feasid.inverse_dynamics(fit.robot, *q).tolist(),
    }


def of_processes(method, folder):
    """In two processes that are started in this way, and in this one."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.starmap(job, [(folder, k) for k in range(2)])
    return agreed([job(folder), *results])


def of_threads(folder):
    results = [None] * 4

    def work(k):
        results[k] = job(folder, k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return agreed(results)


def agreed(results):
    assert all(result == results[0] for result in results), "these differ from each other"
    return results[0]


MODES = {
    "plain": job,
    "threads": of_threads,
    **{m: partial(of_processes, m) for m in ("fork", "spawn", "forkserver")},
}


# -- environments ----------------------------------------------------------------------------------


def make_case(folder):
    from logs import arm_parameters, simulate
    from robots import read_arm

    folder.mkdir()
    robot = read_arm(folder).with_joint_terms()
    log = simulate(robot, arm_parameters(robot), 1, samples=SAMPLES, noise=0.02)
    log[[c for c in log if not c.startswith("ddq_")]].to_csv(folder / "log.csv", index=False)


def run(folder, mode="plain", switches=(), python=sys.executable, **variables):
    """The result of a process, or what it said at its end."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"} | variables
    order = [python, *switches, "-m", "benchmarks.environments", "--probe", mode, str(folder)]
    done = subprocess.run(order, capture_output=True, cwd=ROOT, env=environment, timeout=900)
    if done.returncode:
        return (done.stderr.decode(errors="replace").strip().splitlines() or ["no word"])[-1]
    return json.loads(done.stdout.decode().splitlines()[-1])


def locale_of(work, name):
    """Variables of a locale, which is made where it is not installed; None where it cannot be."""
    place = work / "locales"
    place.mkdir(exist_ok=True)
    order = ["localedef", "-i", name, "-f", "UTF-8", str(place / f"{name}.UTF-8")]
    try:
        made = subprocess.run(order, capture_output=True).returncode == 0
    except OSError:
        made = False
    return {"LC_ALL": f"{name}.UTF-8", "LOCPATH": str(place)} if made else None


def environment_of(work, packages):
    """The Python of an environment of its own with these packages; None where pip has them not."""
    place = work / f"env{len(packages[0])}"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    order = [str(python), "-m", "pip", "install", "-q", *packages]
    return None if subprocess.run(order, capture_output=True).returncode else str(python)


def environments(work, wanted):
    """By name: arguments of `run`, or None where the environment cannot be had here.

    Environments of packages are made only where their names begin as one of those `wanted`.
    """
    read_only = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc", "MPLCONFIGDIR": "/proc/none"}
    out = {
        "locale C, ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "locale C.UTF-8": {"LC_ALL": "C.UTF-8"},
        "locale de_DE": locale_of(work, "de_DE"),
        "locale tr_TR": locale_of(work, "tr_TR"),
        "time zone Pacific/Kiritimati": {"TZ": "Pacific/Kiritimati"},
        "time zone America/St_Johns": {"TZ": "America/St_Johns"},
        "time zone that does not exist": {"TZ": "Nowhere/Nothing"},
        "-O": {"switches": ["-O"]},
        "-OO": {"switches": ["-OO"]},
        "-W error": {"switches": ["-W", "error"]},
        "-X dev": {"switches": ["-X", "dev"]},
        "hashes in another order": {"PYTHONHASHSEED": "4711"},
        "a home that cannot be written": read_only,
        "no home": {"HOME": ""},
        **{name: {"mode": name} for name in MODES if name != "plain"},
    }
    for age, packages in (("oldest", OLDEST), ("newest", NEWEST)):
        name = f"{age} NumPy and pandas"
        python = environment_of(work, packages) if name.startswith(wanted) else None
        out[name] = python and {"python": python}
    free = Path(sys.base_prefix).with_name("3.13.0t") / "bin" / "python"
    out["free-threaded Python"] = {"python": str(free)} if free.exists() else None
    return out


def compared(result, usual):
    """How an environment's result ends."""
    import numpy as np

    if isinstance(result, str):
        return result
    if result == usual:
        return "equal to the bit"
    one, other = np.array(result["torques"]), np.array(usual["torques"])
    off = float(np.linalg.norm(one - other) / np.linalg.norm(other))
    return f"torques differ by {off:.1e}"


# -- names -----------------------------------------------------------------------------------------


def names(folder):
    """By kind of name: how a call with it ends; what may not be raises AssertionError."""
    import pandas as pd

    import feasid

    text, log = (folder / "arm.urdf").read_text(), pd.read_csv(folder / "log.csv")
    usual = feasid.fit(log, folder / "arm.urdf", diagnose=False).delta
    composed = unicodedata.normalize("NFC", "Gelenk_\u00fc")
    out = {}

    def ends(what, call, *named):
        said = found = None
        try:
            found = call()
        except feasid.FeasidError as error:
            said = str(error)
        assert said is None or any(str(n) in said for n in named), f"{what}: {said}"
        assert found is None or (found == usual).all(), what
        out[what] = "right" if said is None else f"refused: {said[:90]}"

    def fit_at(name):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return feasid.fit(log, place, diagnose=False).delta

    for name in ("a\\b.urdf", "C:\\robots\\arm.urdf", "arm .urdf", "CON.urdf", "aux/arm.urdf",
                 "ARM.URDF", "R\u00f6hre.urdf", unicodedata.normalize("NFD", "R\u00f6hre.urdf"),
                 "\u673a\u5668\u4eba.urdf", "x" * 200 + ".urdf"):  # fmt: skip
        ends(f"file {name[:40]!r}", partial(fit_at, name), name)
    ends("a file of Windows", lambda: feasid.load_robot("C:\\none\\arm.urdf"), "arm.urdf")
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, composed)
        renamed = log.rename(columns=lambda c, o=other: c.replace("slide", o))
        (folder / "joint.urdf").write_text(text.replace('"slide"', f'"{composed}"'))
        ends(f"joint in NFC, columns in {form}",
             lambda log=renamed: feasid.fit(log, folder / "joint.urdf", diagnose=False).delta,
             composed, other)  # fmt: skip
    store = feasid.LogStore(folder / "store", folder / "arm.urdf")
    store.add(log, "a")
    for robot in ("A", "a ", "a.", "CON", "a:b", "a/b", "\u00e4", "a\u0308"):
        ends(f"robot {robot!r} of a store beside 'a'",
             lambda robot=robot: store.add(log, robot) and None, repr(robot))  # fmt: skip
    made = [path.parent.name for path in store.folder.glob("*/*.parquet")]
    assert len({name.casefold().rstrip(". ") for name in made}) == len(made), made
    assert sorted(store.robots) == sorted({*store.table["robot"]})
    return out


def main(argv=None):
    """Returns 0 where everything is equal, or refused by name."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m benchmarks.environments", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--only", default="", help="environments whose names begin so")
    parser.add_argument("--write", action="store_true", help="put rows into docs/faults.md")
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.probe:
        print(json.dumps(MODES[given.probe[0]](given.probe[1])))
        return 0
    ends = {}
    with tempfile.TemporaryDirectory() as where:
        work = Path(where)
        make_case(work / "case")
        usual = run(work / "case")
        assert isinstance(usual, dict), usual
        wanted = tuple(given.only.split(","))
        for name, options in environments(work, wanted).items():
            if name.startswith(wanted):
                ends[name] = "not available here"
                if options is not None:
                    ends[name] = compared(run(work / "case", **options), usual)
                print(f"{name}: {ends[name]}", flush=True)
        if not given.only or "names" in given.only:
            for name, end in names(work / "case").items():
                print(f"{name}: {end}", flush=True)
                ends[f"names of other systems: {name}"] = end
    fine = {
        name: end in ("equal to the bit", "right", "not available here")
        or end.startswith("refused")
        or ("NumPy" in name and end.startswith("torques") and float(end.split()[-1]) < CLOSE)
        for name, end in ends.items()
    }
    if given.write:
        from benchmarks.faults_page import write_row

        groups = {}
        for name in ends:
            group, colon, _ = name.partition(": ")
            groups.setdefault(group if colon else "environments", []).append(name)
        for group, members in groups.items():
            bad = [f"{name}: {ends[name]}" for name in members if not fine[name]]
            absent = [name for name in members if ends[name] == "not available here"]
            off = [f"{name}: {ends[name]}" for name in members if "NumPy" in name]
            outcome = [f"{sum(fine[n] for n in members) - len(absent)} equal or refused by name"]
            outcome += [*bad, *off] + [f"not available: {', '.join(absent)}"] * bool(absent)
            write_row(group, len(members), "; ".join(outcome))
    return int(not all(fine.values()))


if __name__ == "__main__":
    sys.exit(main())
