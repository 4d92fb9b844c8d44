"""What a command prints, and how it ends: harmless text, full disks, signals, closed pipes."""

import io
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from robots import ARM

from feasid.cli import main
from feasid.cli.terminal import EscapingStream
from feasid.core.notes import Note
from feasid.core.text import escape_controls

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\r\x00"

ESCAPED = r"\x1b]0;owned\x07\x9b31m\u202e\r\x00"

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and POSIX signals")


def feasid_process(*arguments, **settings):
    return subprocess.Popen(
        [sys.executable, "-m", "feasid", *map(str, arguments)], text=True, **settings
    )


def test_what_does_not_print_is_written_as_an_escape():
    assert escape_controls(EVIL) == ESCAPED
    assert escape_controls("a\n\tb\udc9b\u2028\xa0é") == "a\n\tb\\udc9b\\u2028\xa0é"
    assert escape_controls("a\nb", keep="") == r"a\nb"
    assert str(Note(EVIL)) == ESCAPED


def test_everything_printed_passes_the_gate():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    gate = EscapingStream(stream)
    print(f"{EVIL} é", file=gate)
    stream.flush()
    assert stream.buffer.getvalue() == f"{ESCAPED} \\xe9\n".encode()


def test_names_from_outside_reach_no_terminal(here, capsys):
    name = "a\x1b[31m\x9b.urdf"
    bad = ARM.replace('name="upper"', 'name="up&#x9b;31m"').replace("'upper'", "'up\x9b'")
    (here / name).write_text(bad)
    (here / "log\x1b[2J.csv").write_text("t\x1b[2J,q\x9b_1\n0,1\n")
    (here / "proof\x1b.json").write_text('{"format": "\x9b\\u001b"}')
    (here / "arm.urdf").write_text(ARM)
    for command in (
        ["check", name],
        ["check", "no\x1b[31m"],
        ["base-parameters", name],
        ["diagnose", "log\x1b[2J.csv", "--robot", "arm.urdf"],
        ["fit", "log\x1b[2J.csv", "--robot", "arm.urdf"],
        ["verify", "proof\x1b.json"],
        ["fit\x1b", "x"],
        ["check", "--form\x9bat", "x"],
    ):
        with suppress(SystemExit):
            main(command)
        said = capsys.readouterr()
        assert not {"\x1b", "\x9b"} & set(said.out + said.err), command
        assert said.out + said.err


@linux
def test_a_full_disk_behind_standard_output_is_an_error_with_a_name(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    with open("/dev/full", "w") as full:
        process = feasid_process(
            "base-parameters", tmp_path / "arm.urdf", stdout=full, stderr=subprocess.PIPE
        )
        said = process.communicate()[1]
    assert process.returncode == 2
    assert said == "feasid: error: cannot print: No space left on device\n"


@linux
def test_after_a_closed_pipe_a_command_goes_on_quietly_and_writes_its_files(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    out = "correct", tmp_path / "arm.urdf", "--out", tmp_path / "fixed.urdf"
    for command in (("base-parameters", tmp_path / "arm.urdf", "--table"), out):
        with feasid_process(*command, **pipes) as process:
            process.stdout.close()
            assert process.stderr.read() == ""
            assert process.wait() == 0
    assert (tmp_path / "fixed.urdf").exists()


@linux
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_signals_end_a_command_with_the_truth(tmp_path, number, word):
    """The robot comes through a pipe that nobody fills, so that the command waits for it."""
    program = (
        "import signal, sys, feasid.core.files\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whatever the host does
        "from feasid.cli import main\n"
        "def slow(path, most=0):\n"
        "    print('ready', flush=True)\n"
        "    import time; time.sleep(60)\n"
        "import feasid.robot.formats.xml as text\n"
        "text.read_whole = slow\n"
        "sys.exit(main(['check', 'x']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number
    assert said == f"\nfeasid: {word}; nothing was written\n"


def test_the_handler_of_the_host_is_kept(capsys):
    before = signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr
    assert main(["--version"]) == 0
    assert (signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr) == before


def test_outputs_are_checked_before_anything_is_read(here, capsys):
    for name in ("arm.urdf", "log.csv"):
        (here / name).write_text("kept")
    fit = ["fit", "log.csv", "--robot", "arm.urdf", "--overwrite"]
    reduce = ["reduce", "log.csv", "--robot", "arm.urdf", "--overwrite"]
    for command, words in (
        ([*fit, "--out", "x.urdf", "--report", "x.urdf"], "same file"),
        ([*fit, "--out", "x.urdf", "--save", "x.urdf.feasid.json"], "same file"),
        ([*fit, "--out", "arm.urdf"], "is an input"),
        ([*fit, "--save", "log.csv"], "is an input"),
        ([*fit, "--save", "/proc/x"], "cannot write"),
        ([*reduce, "--out", "log.csv"], "is an input"),
        ([*reduce, "--out", "arm.urdf"], "is an input"),
        (["correct", "arm.urdf", "--out", "arm.urdf", "--overwrite"], "is an input"),
        (["correct", "arm.urdf", "--out", "log.csv"], "--overwrite"),
        (["predict", "arm.urdf", "log.csv", "--out", "log.csv", "--overwrite"], "is an input"),
        (["excite", "arm.urdf", "--out", "a", "--ros", "a"], "same file"),
    ):
        assert main(command) == 2, command
        assert words in capsys.readouterr().err
        assert sorted(os.listdir(here)) == ["arm.urdf", "log.csv"]
        assert {p.read_text() for p in here.iterdir()} == {"kept"}


def test_a_report_without_its_extra_is_refused_before_the_fit(here, capsys, monkeypatch):
    monkeypatch.setattr("feasid.core.errors.find_spec", lambda name: None)
    assert main(["fit", "log.csv", "--robot", "arm.urdf", "--report", "x.html"]) == 2
    assert 'pip install "feasid[report]"' in capsys.readouterr().err


def test_standard_input_is_a_log(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    process = feasid_process(
        "diagnose", "-", "--robot", tmp_path / "arm.urdf",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = process.communicate("t,q_shoulder\n0,1\n")
    assert process.returncode in (1, 2)
    assert "q_slide" in "".join(said)
