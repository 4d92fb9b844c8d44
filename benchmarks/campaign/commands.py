"""Command lines: words left out, doubled, exchanged and added; what they leave behind."""

# ruff: noqa: E501

import contextlib
import io
import os
import shutil
from itertools import pairwise
from pathlib import Path

from robots import ARM

import feasid
from feasid.cli import COMMANDS, main
from feasid.core.errors import InputError

from .kinds import Kind, fitted, log

LINES = (
    "check arm.urdf", "check --bodies arm.urdf", "check --format json arm.urdf", "base-parameters arm.urdf",
    "base-parameters --json arm.urdf", "base-parameters --measured shoulder --static arm.urdf", "verify proof.json",
    "correct arm.urdf --out out.urdf", "diagnose log.csv --robot arm.urdf", "show fit.feasid",
    "errors fit.feasid log.csv", "predict fit.feasid log.csv --out out.csv",
    "compare arm.urdf arm.urdf", "export fit.feasid --c arm.c", "completion bash",
    "reduce log.csv --robot arm.urdf --out out.reduced", "verify proof.json --robot arm.urdf",
    "payload log.csv --without log.csv --robot arm.urdf",
)  # fmt: skip

LONG_LINES = (
    "fit log.csv --robot arm.urdf --out out.urdf", "replay log.csv --robot arm.urdf",
    "fit part.reduced --robot arm.urdf --save out.feasid --overwrite",
)  # fmt: skip

OFTEN = 4
"""How much more often short commands are tried, of which a hundred take the time of one fit."""

EXTRA = (
    "--overwrite", "--resume", "--json", "--units q=deg", "--lock shoulder=1", "--gravity 0,0,-9.81",
    "--weights wls", "--slack nan", "-1", "1e999", "--cutoff no", "--workers", "--option a=b",
    "--friction viscous", "--nan drop-segments", "--out out.urdf", "log.csv", "arm.urdf", "-",
    "/dev/null", ".", "*", "[", "\x1b", "", "x" * 300, "--help", "--rate 0", "--force", "fit.feasid",
    "proof.json", "part.reduced", "--robot arm.urdf", "--cutoff 20", "--delay 0.01", "--sort yes",
    "--exclude [[0.1,0.2]]", "--columns q=q_{}", "--out ./log.csv", "--trim 0", "--decimate 3",
    "--consistency semi", "--coupling a:shoulder=1,slide=-1", "--floating", "--topic x", "--rest 0.1",
)  # fmt: skip
"""Words that may be put anywhere, with their values."""

OUTPUTS = ("--out", "--save", "--c", "--parameters", "--report", "--beta", "--plot")
"""What comes before the name of a file that is written."""

STATUSES = range(6)
REFUSED = 2


def _words(path):
    words = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return [word for word in words if "\0" not in word]


def _ran(words):
    """Exit status, what was printed, and whether the words are those of a command."""
    out, err = io.StringIO(), io.StringIO()
    parsed = bool(words) and (words[0] in COMMANDS or words[0].startswith("-"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as stop:
            status, parsed = stop.code, stop.code == 0
    return status, out.getvalue() + err.getvalue(), parsed


def change(rng, data):
    words = data.decode("utf-8", "surrogateescape").split("\n")
    k = rng.randrange(len(words) + 1)
    how = rng.randrange(4)
    if how == 0 or not words:
        words[k:k] = rng.choice(EXTRA).split(" ")
    elif how == 1:
        words[k - 1 : k] = rng.choice(EXTRA).split(" ")
    elif how == 2:
        words.pop(k - 1)
    else:
        words.insert(k, rng.choice(words))
    return "\n".join(words).encode("utf-8", "surrogateescape")


def command(folder):
    """A command line, one word per line, in a folder of its own."""
    place = folder / "place"
    place.mkdir()
    (place / "arm.urdf").write_text(ARM)
    log().to_csv(place / "log.csv", index=False)
    fitted().save(place / "fit.feasid")
    fitted().certificate.save(place / "proof.json")
    feasid.reduce(place / "log.csv", place / "arm.urdf").save(place / "part.reduced")
    inputs = {p.name: p.read_bytes() for p in place.iterdir()}

    def run(path, _):
        os.chdir(place)
        words = _words(path)
        status, printed, parsed = _ran(words)
        assert status in STATUSES, f"exit status {status}"
        assert not {"\x1b", "\x9b"} & set(printed), "an escape was printed"
        found = {p.name: p for p in place.iterdir()}
        assert not [n for n in found if n.startswith(".feasid-")], "a partial file is left"
        changed = [n for n, content in inputs.items() if found.pop(n).read_bytes() != content]
        for name in changed:
            (place / name).write_bytes(inputs[name])
        asked = {
            Path(b).name for a, b in pairwise(words) if a in OUTPUTS and "--overwrite" in words
        }
        assert not set(changed) - asked, f"{changed} was changed and not named to be overwritten"
        for made in found.values():
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        if not parsed:
            raise InputError("no command, or words that it does not have")
        return status

    def accepted(path, status):
        if status == REFUSED:
            raise InputError("refused")

    seeds = tuple("\n".join(line.split()).encode() for line in OFTEN * LINES + LONG_LINES)
    return Kind("input.words", seeds, change, (("parsed", run), ("accepted", accepted)))
