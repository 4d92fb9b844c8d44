"""What is saved is read again: the same bits, the same future; all else is refused by name.

    python -m benchmarks.round_trip --draws 200 [--kinds Fit] [--minutes 20] [--seed N] [--write]

`KINDS` has every class of the package with a method `save`, and stores of logs. A draw takes
options, a kind of robot and of log, and a state; it saves, reads and compares what both are, what
both do next, and the files that both write. Then the file is cut, changed by a byte, made longer,
robbed of a member, said to be of an earlier format, and replaced by one of another kind: each is
refused by the file's name, or gives the very same object.
"""

import argparse
import inspect
import io
import json
import pickle
import pkgutil
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

import feasid
from benchmarks.faults_page import write_row
from benchmarks.together.arms import LOGS, ROBOTS
from benchmarks.together.choices import CHOICES
from benchmarks.together.further import FURTHER
from benchmarks.together.judge import SHOWN
from benchmarks.together.rows import APART, Row
from feasid.core.errors import FeasidError
from feasid.options.tables import (
    FitOptions,
    LogOptions,
    MeasuredOptions,
    ReduceOptions,
    TermOptions,
)

EQUAL = 1e-9
"""Relative difference of numbers that are summed in another order."""
BYTES, CUTS = 12, 4
"""Changed bytes and cuts of each file; a third of them in the short test."""
DRAWN = 0.3
"""Share of fits that robots are drawn of, which takes a third of the time of a round trip."""
OFTEN = 3
"""How much more often a further robot is drawn than one of the array with one kind of log."""
ROWS, FULL_ROWS = 900, 2000
"""Of the logs of the short test, and of others: half of them, since no fit is judged."""
QUICK = {"diagnose": False, "candidates": (), "plausible": False}
"""Options of fits of the short test."""
DAYS = ("2026-11-02", "2026-11-03", "2026-11-04")


@dataclass(frozen=True, eq=False)
class Saved:
    """An object with the ways to write, read and compare it."""

    one: object
    seen: Callable
    """What it is, in a form that can be compared."""
    future: Callable
    """What it does next; of an object and an empty folder."""
    save: Callable
    read: Callable = feasid.load
    name: str = "one.feasid"
    words: str = ""


def classes_that_save():
    """Names of the package's classes with a method `save` of their own."""
    out = set()
    for module in pkgutil.walk_packages(feasid.__path__, "feasid."):
        if not module.name.endswith("__main__"):
            found = vars(import_module(module.name)).values()
            out |= {c.__name__ for c in found if inspect.isclass(c) and "save" in vars(c)}
    return out


# -- draws -----------------------------------------------------------------------------------------


def drawn_world(rng, table, quick, most=2):
    """A robot with its log, and options of a table that go with it, as drawn labels.

    Three robots in ten have springs, joints without motors, temperatures, a weighed load or an IMU
    that is turned and late.
    """
    worlds = [(robot, log) for robot in ROBOTS for log in LOGS if (robot, log) not in APART]
    worlds += [(name, "") for name in FURTHER] * OFTEN
    while True:
        choices = [c for c in CHOICES[1:] if c.option in table.__annotations__]
        labels = tuple(c.label for c in rng.sample(choices, rng.randrange(most + 1)))
        robot, log = ("serial", "clean") if quick else rng.choice(worlds)
        row = Row(labels, robot, log, "save")
        if len({c.option for c in row.choices}) == len(labels):
            break
    arm = row.world()
    rows = ROWS if quick else FULL_ROWS
    arm = replace(
        arm, **{name: getattr(arm, name)[:rows] for name in ("log", "test_log", "loaded")}
    )
    asked = dict(QUICK) if quick and table is FitOptions else {}
    for choice in row.choices:
        asked |= choice.options(arm)
    return arm, {**arm.options, **asked}, str(row)


def of_table(options, table):
    return {k: v for k, v in options.items() if k in table.__annotations__}


def attempt(function):
    """What a function gives, or the words of its refusal."""
    try:
        return function()
    except FeasidError as error:
        return f"refused: {error}"


def nameless(what, folder):
    """A refusal without the folder, which another object's has not."""
    return what.replace(f"{folder}", "") if isinstance(what, str) else what


def fit_kind(rng, folder, quick):
    """Of a log, of two, of reduced data, of a log that leaves parameters undetermined without a
    prior, asked for everything before, or read before and saved again.
    """
    arm, options, words = drawn_world(rng, FitOptions, quick)
    state = rng.choice(("fresh", "two", "reduced", "undetermined", "asked", "read before"))
    data = [arm.log, arm.loaded] if state == "two" else arm.log
    if state == "undetermined":
        data, options = at_rest(data, rng.choice(arm.joints)), {**options, "prior": None}
    if state == "reduced":
        data = feasid.reduce(data, arm.description, **of_table(options, ReduceOptions))
        options = {k: v for k, v in options.items() if k not in LogOptions.__annotations__}
    fit = feasid.fit(data, arm.description, **options)
    if state == "undetermined" and np.isfinite(fit.covariance).all():
        raise FeasidError("the log determines every parameter: draw another")
    if state == "asked":
        fit_future(arm, fit, folder)
    if state == "read before":
        fit.save(folder / "before.feasid")
        fit = feasid.load(folder / "before.feasid")
    future = partial(fit_future, arm, quick=quick or rng.random() > DRAWN)
    return Saved(fit, fit_seen, future, type(fit).save, words=f"{words}, {state}")


def at_rest(log, joint):
    """The log as if a joint had not moved; torques stay what they are."""
    still = [c for c in log if c.endswith(f"_{joint}") and not c.startswith(("tau", "cmd"))]
    return log.assign(**{column: 0.1 * column.startswith("q_") for column in still})


def fit_seen(fit):
    arrays = [getattr(fit, name).tobytes() for name in ("delta", "beta", "covariance")]
    return arrays, {name: show(fit) for name, show in SHOWN.items()}


def fit_future(arm, fit, folder, quick=True):
    """Predictions, errors, a written robot, drawn ones, a range, and the prior that it is."""

    def written():
        fit.write(folder / "arm.xml", force=True)
        return (folder / "arm.xml").read_bytes()

    prior = attempt(lambda: feasid.GaussianPrior.of(fit))
    law = attempt(lambda: vars(fit.error_law(30.0)))
    return {
        "predict": attempt(lambda: fit.predict(arm.test_log).to_numpy()),
        "errors": attempt(lambda: fit.errors(arm.test_log).to_numpy()),
        "write": nameless(attempt(written), folder),
        "samples": quick or attempt(lambda: fit.sample(3, seed=7).parameters),
        "range": attempt(lambda: repr(fit.range(".".join(fit.base.robot.parameter_names[9])))),
        "law": law if isinstance(law, dict) else "refused",  # which joint showed it is not saved
        "prior": prior if isinstance(prior, str) else (prior.mean, prior.matrix),
        "actuators": attempt(lambda: repr(fit.actuators())),
        "again": attempt(lambda: fit.errors_of(fit.reduced).to_numpy()),
    }


def reduced_kind(rng, folder, quick):
    """A log, two logs, one with shifted torques, a compact one, one with further notes."""
    arm, options, words = drawn_world(rng, ReduceOptions, quick, 3)
    logs = [attempt(lambda log=log: feasid.reduce(log, arm.description, **options))
            for log in (arm.log, arm.test_log)]  # fmt: skip
    if isinstance(logs[0], str):
        raise FeasidError(logs[0])
    states = {
        "one": lambda: logs[0],
        "two": lambda: logs[0] + logs[1],
        "late": lambda: logs[0].with_shifted_torques(0.004),
        "compact": lambda: logs[0].compact(),
        "noted": lambda: logs[0].with_notes("ein Vermerk \N{GREEK SMALL LETTER TAU}"),
    }
    state = rng.choice([*states])
    one = states[state]()

    def future(reduced, folder):
        terms = {**TermOptions.__annotations__, **MeasuredOptions.__annotations__}
        asked = {k: v for k, v in options.items() if k in terms}
        fit = attempt(lambda: feasid.fit(reduced, arm.description, **QUICK, **asked))
        return (reduced + reduced).to_bytes(), fit if isinstance(fit, str) else fit.delta.tobytes()

    return Saved(one, lambda r: r.to_bytes(), future, type(one).save, feasid.Reduced.load,
                 "one.reduced", f"{words}, {state}")  # fmt: skip


def certificate_kind(rng, folder, quick):
    """Of a check, of a file that is no robot, of a fit, of a range, of bounds that conflict."""
    arm, options, words = drawn_world(rng, FitOptions, True, 0)
    robot, numbers = arm.description, np.random.default_rng(rng.randrange(10**6))
    scaled = numbers.uniform(0.3, 3.0, robot.size)
    bad = robot.with_values(robot.values * np.where(scaled > 2.0, -1.0, scaled))
    states = {
        "feasible": lambda: feasid.check(robot).certificate,
        "infeasible": lambda: feasid.check(bad).certificate,
        "fit": lambda: feasid.fit(arm.log, robot, **options).certificate,
        "range": lambda: feasid.fit(arm.log, robot, **options).range("l3.m").certificate("lower"),
    }
    state = rng.choice([*states])
    one = states[state]()

    def read(path):
        proof = feasid.Certificate.load(path)
        proof.verify()
        return proof

    return Saved(one, lambda c: json.dumps(c.data), lambda c, _: (c.verify(), repr(c), c.limit),
                 type(one).save, read, "one.json", f"{words}, {state}")  # fmt: skip


def fleet_kind(rng, folder, quick):
    arm, options, words = drawn_world(rng, FitOptions, quick, 1)
    logs = {"a": arm.log, "b \N{GREEK SMALL LETTER BETA}": arm.test_log}
    fleet = feasid.fit_fleet(logs, arm.description, **QUICK | options)

    def seen(fleet):
        arrays = fleet.prior.mean, fleet.prior.matrix
        return [x.tobytes() for x in arrays], str(fleet.table), repr(fleet), str(fleet.friction)

    def future(fleet, folder):
        fleet.report(folder / "fleet.html")
        one = attempt(lambda: fleet.fit(arm.loaded))
        return (folder / "fleet.html").read_text(), one if isinstance(one, str) else fit_seen(one)

    return Saved(fleet, seen, future, type(fleet).save, words=words)


def store_kind(rng, folder, quick):
    """Of logs of one or two robots and several days, some of them compact."""
    arm, options, words = drawn_world(rng, ReduceOptions, quick)
    store = feasid.LogStore(folder / "first", arm.description, **options)
    compact = rng.random() < 0.3
    made = {}
    for day, log in zip(DAYS, (arm.log, arm.test_log, arm.loaded), strict=True):
        (path,) = store.add(log, "a", day, compact=compact)
        made[path.relative_to(store.folder)] = path.read_bytes()
    name = rng.choice([*made])

    def put(_, path, overwrite=False):
        for other, content in made.items():
            place = path.parents[1] / other
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def read(path):
        found = feasid.LogStore(path.parents[1], arm.description, **options)
        found.table, found.logs("a"), attempt(lambda: found.drift("a"))
        return found

    def seen(store):
        logs = {name: log.to_bytes() for name, log in store.logs("a").items()}
        return logs, store.table.to_csv(), store.robots

    def future(store, folder):
        fit = attempt(lambda: store.fit("a", **QUICK))
        drift = attempt(lambda: str(store.drift("a").display()))
        return fit if isinstance(fit, str) else fit.delta.tobytes(), drift

    return Saved(store, seen, future, put, read, f"store/{name}", f"{words}, compact {compact}")


def online_kind(rng, folder, quick):
    from benchmarks.online_states import drawn_state

    return Saved(*drawn_state(rng.randrange(10**6), quick))


KINDS = {
    "Certificate": certificate_kind,
    "Fit": fit_kind,
    "Fleet": fleet_kind,
    "LogStore": store_kind,
    "OnlineFit": online_kind,
    "Reduced": reduced_kind,
}
"""How to draw one of every kind that is kept in files."""


# -- what is compared ------------------------------------------------------------------------------


def same(a, b):
    """Whether two values are equal: to the bit, or for arrays up to the order of sums."""
    if isinstance(a, dict):
        return isinstance(b, dict) and [*a] == [*b] and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        size = EQUAL * (1 + np.nanmax(np.abs(a), initial=0.0))
        return a.shape == b.shape and np.allclose(b, a, rtol=EQUAL, atol=size, equal_nan=True)
    return a == b


def differences(a, b, at=""):
    """Where two values differ."""
    if isinstance(a, dict) and isinstance(b, dict) and [*a] == [*b]:
        return [d for k in a for d in differences(a[k], b[k], f"{at}[{k!r}]")]
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
        return [d for k, pair in enumerate(zip(a, b, strict=True))
                for d in differences(*pair, f"{at}[{k}]")]  # fmt: skip
    return [] if same(a, b) else [f"{at}: {str(a)[:300]} was saved, {str(b)[:300]} read"]


def check_equal(saved, folder):
    """What was read is what was saved, does the same, and is saved as the same file."""
    one, path = saved.one, folder / saved.name
    path.parent.mkdir(parents=True, exist_ok=True)
    saved.save(one, path)
    back = saved.read(path)
    wrong = differences(saved.seen(one), saved.seen(back), "seen")
    if not isinstance(one, feasid.LogStore):
        files = [folder / f"again_{k}" for k in range(2)]
        saved.save(back, files[0])
        saved.save(saved.read(files[0]), files[1])  # the first may hold tuples in place of arrays
        wrong += ["another file"] * (files[0].read_bytes() != files[1].read_bytes())
    futures = []
    for name, each in (("one", one), ("back", back)):
        (folder / name).mkdir()
        futures.append(saved.future(each, folder / name))
    wrong += differences(*futures, "future")
    assert not wrong, "; ".join(wrong)
    return path


def damaged(content, rng, share):
    """The file cut, with a byte changed, longer, without a member."""
    for _ in range(CUTS // share):
        yield "cut", content[: rng.randrange(len(content))]
    for _ in range(BYTES // share):
        k = rng.randrange(len(content))
        other = bytes([content[k] ^ rng.randrange(1, 256)])
        yield f"byte {k}", content[:k] + other + content[k + 1 :]
    yield "longer", content + b"\0"
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for name in members:
            yield f"without {name}", packed({k: v for k, v in members.items() if k != name})


def earlier(content):
    """The file as of the format before, or None where the format is none of its own."""
    if content[:2] != b"PK":
        return content.replace(b"feasid certificate 2", b"feasid certificate 1")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if "model.json" in members:
        model = json.loads(members["model.json"])
        members["model.json"] = json.dumps(model | {"version": model["version"] - 1}).encode()
    else:
        buffer = io.BytesIO()
        np.save(buffer, np.load(io.BytesIO(members["version.npy"])) - 1)
        members["version.npy"] = buffer.getvalue()
    return packed(members)


def packed(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


OPTIONAL = ("certificate.json", "description")
"""Members that a fit without a proof, or of a robot without a file, has not."""


def check_refusals(saved, path, foreign, rng, share):
    """Returns how many files were refused by name; the others gave the same object."""
    content, seen, refused = path.read_bytes(), saved.seen(saved.read(path)), 0
    changed = [*damaged(content, rng, share)]
    changed += [(f"a file of {kind}", data) for kind, data in foreign]
    if not saved.name.endswith(".parquet"):
        changed.append(("earlier", earlier(content)))
    for what, data in changed:
        path.write_bytes(data)
        back, said = None, ""
        try:
            back = saved.read(path)
        except FeasidError as error:
            refused, said = refused + 1, str(error)
        if back is None:
            assert path.name in said, f"{what}: {path.name} is not named: {said}"
            assert what != "earlier" or "format" in said, said
            continue
        fine = what.removeprefix("without ") in OPTIONAL or not differences(seen, saved.seen(back))
        fine &= not what.startswith(("a file", "earlier", "cut"))
        assert fine, f"{what} is accepted"
    path.write_bytes(content)
    return refused


def draw(kind, seed, folder, foreign=(), quick=False):
    """One round trip; returns refused files, and the file. Draws until options go together."""
    rng = random.Random(seed)
    for k in range(99):
        place = folder / f"{k}"
        place.mkdir()
        try:
            saved = KINDS[kind](rng, place, quick)
        except FeasidError:
            continue
        try:
            path = check_equal(saved, place)
            return check_refusals(saved, path, foreign, rng, 3 if quick else 1), path.read_bytes()
        except Exception as error:
            error.add_note(f"{kind}, seed {seed}: {saved.words}")
            raise
    raise AssertionError(f"{kind}, seed {seed}: no options go together")


FOREIGN = {"pickle": pickle.dumps([1]), "nothing": b"", "a table": b"t,q_j1\n0,1\n"}
"""Files that are of no kind."""


def main(argv=None):
    """Returns 0 where everything came back, and all else was refused."""
    raw = argparse.RawDescriptionHelpFormatter
    about = argparse.ArgumentParser(
        "python -m benchmarks.round_trip", description=__doc__, formatter_class=raw
    )
    about.add_argument("--draws", type=int, default=200, help="of each kind")
    about.add_argument("--kinds", default=",".join(KINDS))
    about.add_argument("--seed", type=int, help="of the first draw; default: a new one")
    about.add_argument("--minutes", type=float, default=np.inf, help="of each kind, at most")
    about.add_argument("--write", action="store_true", help="put the counts into docs/faults.md")
    given = about.parse_args(argv)
    first = int(np.random.SeedSequence().entropy % 10**6) if given.seed is None else given.seed
    assert classes_that_save() | {"LogStore"} == set(KINDS)
    wrong, foreign = 0, dict(FOREIGN)
    for kind in given.kinds.split(","):
        counts, begun, end = Counter(), time.process_time(), time.monotonic() + 60 * given.minutes
        for seed in range(first, first + given.draws):
            if time.monotonic() > end:
                break
            counts["draws"] += 1
            with tempfile.TemporaryDirectory() as folder:
                others = [(k, v) for k, v in foreign.items() if k != kind]
                try:
                    refused, content = draw(kind, seed, Path(folder), others)
                except Exception as error:
                    counts["wrong"] += 1
                    where = "; ".join(error.__notes__)
                    print(f"{type(error).__name__}: {error} ({where})", flush=True)
                    continue
            foreign[kind] = content
            counts["equal"] += 1
            counts["refused"] += refused
            if counts["draws"] % 10 == 0:
                print(f"{kind}: {counts['draws']} draws", flush=True)
        seconds = time.process_time() - begun
        refused = f"{counts['refused']} damaged, older or foreign files refused by name"
        outcome = f"seed {first}: {counts['equal']} equal, {counts['wrong']} otherwise; {refused}"
        print(f"{kind}: {outcome}; {seconds:.0f} s", flush=True)
        if given.write:
            write_row(f"{kind}: another one after saving and reading, or a damaged file accepted",
                      counts["draws"], outcome)  # fmt: skip
        wrong += counts["wrong"]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
