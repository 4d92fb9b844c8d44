"""Completion: every command and option, in three shells, and harmless without the extra."""

import re
import shutil
import subprocess

import pytest

from feasid.cli import COMMANDS, main
from feasid.cli.explain import SHELLS, build_full_parser
from feasid.options.tables import FitOptions

shtab = pytest.importorskip("shtab")

ASKED = """
source {script}
complete_function=$(complete -p feasid | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
$complete_function feasid "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
echo "${{COMPREPLY[@]}}"
"""

LINES, COLUMNS = 38, 100
"""Of the list of commands."""

SCREEN = 45
"""Lines of the help of a fit."""


@pytest.fixture
def scripts(tmp_path, capsys):
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        (tmp_path / shell).write_text(capsys.readouterr().out)
    return tmp_path


def test_every_shell_reads_its_script(scripts):
    for shell in SHELLS:
        text = (scripts / shell).read_text()
        assert all(name in text for name in COMMANDS)
        if shutil.which(shell):
            subprocess.run([shell, "-n", scripts / shell], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "answer"),
    [("feasid exc", "excite"), ("feasid fit --cut", "--cutoff"), ("feasid completion f", "fish")],
)
def test_bash_completes(scripts, words, answer):
    program = ASKED.format(script=scripts / "bash", words=words)
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [answer]


def test_paths_are_completed():
    parser = build_full_parser({"bash": "files"})
    commands = parser._subparsers._group_actions[0].choices
    out = next(a for a in commands["fit"]._actions if "--out" in a.option_strings)
    assert out.complete == {"bash": "files"}


def test_without_the_extra_the_command_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert 'pip install "feasid[completion]"' in capsys.readouterr().err


def test_help_of_a_fit_fits_a_screen_and_all_of_it_is_one_argument_away(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help"])
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= SCREEN
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help-all"])
    everything = capsys.readouterr().out
    assert set(re.findall(r"--[\w-]+", short)) <= set(re.findall(r"--[\w-]+", everything))
    assert all(name.replace("_", "-") in everything for name in FitOptions.__annotations__)


def test_help_fits_a_screen(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
