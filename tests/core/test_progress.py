"""Progress of long work: on a terminal, in a pipe, in a notebook, and where nobody asked."""

import io
import threading
import time

import pytest

import feasid
from feasid.core import progress


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(progress, "PRINTED", 0.002)
    monkeypatch.setattr(progress, "REDRAWN", 0.02)
    yield
    feasid.set_progress(False)


def work():
    with progress.step("fitting a\nb") as robots, progress.step("searching") as advance:
        for done in range(4):
            robots(1, 2)
            advance(done, 4)
            time.sleep(0.05)


@pytest.mark.parametrize("where", ["terminal", "pipe", "notebook"])
def test_the_step_its_share_and_the_time_left_are_shown(where, quick, monkeypatch):
    module = "ipykernel.iostream" if where == "notebook" else "io"
    stream = type("Stream", (io.StringIO,), {"__module__": module})()
    stream.isatty = lambda: where == "terminal"
    monkeypatch.setattr("sys.stderr", stream)
    feasid.set_progress()
    work()
    printed = stream.getvalue()
    assert r"fitting a\nb, 1 of 2, 0 s left: searching, 2 of 4, 0 s left, 0 s" in printed
    assert printed.endswith(r"fitting a\nb, done, 0 s" + "\n")
    assert (printed.count("\n") == 1) == ("\r" in printed) == (where != "pipe")


def test_short_work_and_work_that_nobody_watches_is_silent(capsys):
    work()
    feasid.set_progress()
    work()
    feasid.set_progress(False)
    assert capsys.readouterr().err == ""


def test_a_function_gets_the_lines_and_other_threads_do_not_mix_in(quick):
    lines = []
    feasid.set_progress(lines.append)
    other = threading.Thread(target=lambda: progress.step("other").__enter__())
    with progress.step("fitting"):
        other.start()
        time.sleep(0.1)
    other.join()
    assert lines[-1] == "fitting, done, 0 s"
    assert "other" not in str(lines)


def test_an_error_ends_the_steps(quick):
    lines = []
    feasid.set_progress(lines.append)
    with (
        pytest.raises(feasid.FeasidError, match="no"),
        progress.step("first"),
        progress.step("second"),
    ):
        raise feasid.errors.InputError("no")
    lines.clear()  # a busy machine may have shown the first
    with progress.step("third"):
        time.sleep(0.1)
    assert {line.split(",")[0] for line in lines} == {"third"}


@pytest.mark.slow
def test_long_calls_say_what_they_do(quick, tmp_path):
    log, lines = feasid.datasets.load("arm"), []
    robot, half = log.attrs["robot"], log[:1200]
    feasid.set_progress(lines.append)
    fit = feasid.fit(log)
    calls = {
        "computing ranges": fit.ranges,
        "simulating": lambda: fit.simulate(log),
        "drawing robots": lambda: fit.sample(4),
        "drawing the report": lambda: fit.report(tmp_path / "report.html"),
        "diagnosing": lambda: feasid.diagnose(log),
        "replaying the log": lambda: feasid.replay(half, robot),
        "reading and reducing": lambda: feasid.reduce(log),
        "identifying the load": lambda: feasid.payload(half, log[1200:]),
        "fitting robots": lambda: feasid.fit_fleet({"a": half, "b": log[1200:]}, robot),
        "searching": lambda: feasid.excite(robot, duration=4, time_limit=0.3, collision=False),
    }
    for said, call in calls.items():
        call()
        assert lines[-1].startswith(f"{said}, done, ")
    assert "fitting: searching for effects, " in str(lines)
    assert " s left" in str(lines)
