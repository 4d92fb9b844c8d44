"""Reading and writing files: whole or not at all, and regular files only."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest
from logs import arm_and_log
from robots import ARM

from feasid.cli import main
from feasid.core import files
from feasid.core.errors import InputError, LimitError, OutputError
from feasid.core.files import (
    check_outputs,
    read_whole,
    record_written_files,
    with_ending,
    write_atomically,
)

LONG = "x" * 300

HIDDEN = ".feasid-"

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, modes and devices")


def left_over(folder):
    return [name for name in os.listdir(folder) if name.startswith(HIDDEN)]


# -- reading --------------------------------------------------------------------------------------


@posix
def test_pipes_and_devices_neither_hang_nor_feed_without_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"a pipe, expected a file; .* standard input, -"):
        read_whole(tmp_path / "pipe")
    with pytest.raises(InputError, match="a device, expected a file"):
        read_whole("/dev/zero")


def test_what_is_no_file_is_named(tmp_path):
    (tmp_path / "arm.urdf").touch()
    for path, words in (
        (tmp_path, "a folder"),
        (tmp_path / "arms.urdf", r"no such file \(did you mean 'arm.urdf'\?\)"),
        (tmp_path / "none" / "arm.urdf", "no folder"),
        (tmp_path / LONG, "cannot be read: File name too long"),
        ("a\0b", "cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            read_whole(path)


def test_no_more_is_read_than_the_limit(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"x" * 100)
    assert read_whole(path, 100) == b"x" * 100
    with pytest.raises(LimitError, match="limit of 99 bytes"):
        read_whole(path, 99)
    with pytest.raises(LimitError), files.open_for_reading(path, 99):
        pass


def test_standard_input_is_a_dash(monkeypatch, tmp_path):
    (tmp_path / "given").write_bytes(b"t,q\n")
    with (tmp_path / "given").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert read_whole("-") == b"t,q\n"
    with (tmp_path / "given").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(LimitError, match="standard input"):
            read_whole("-", 3)


# -- writing --------------------------------------------------------------------------------------


def test_nothing_is_replaced_unless_told(tmp_path):
    path = tmp_path / "out"
    write_atomically(path, b"one")
    with pytest.raises(OutputError, match="exists; pass overwrite=True"):
        write_atomically(path, b"two")
    write_atomically(path, b"two", overwrite=True)
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch, links):
    path = tmp_path / "out"

    def intrude(handle):
        path.write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", intrude)
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    with pytest.raises(OutputError, match="exists"):
        write_atomically(path, b"ours")
    assert path.read_bytes() == b"theirs"
    assert left_over(tmp_path) == []


def refuse_links(*_):
    raise OSError(files.NO_LINKS[0], "no links here")


def test_file_systems_without_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse_links)
    write_atomically(tmp_path / "out", b"content")
    assert (tmp_path / "out").read_bytes() == b"content"
    assert left_over(tmp_path) == []


@posix
def test_modes_and_links_are_kept(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_atomically(link, b"new", overwrite=True)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    hanging = tmp_path / "hanging"
    hanging.symlink_to(tmp_path / "made")
    write_atomically(hanging, b"new")
    assert (tmp_path / "made").read_bytes() == b"new"
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OutputError, match="cannot write"):
        write_atomically(circle, b"new", overwrite=True)


@posix
def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(OutputError, match="no regular file"):
            write_atomically(path, b"x", overwrite=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(OutputError, match="a folder"):
        write_atomically(tmp_path, b"x", overwrite=True)
    with pytest.raises(OutputError, match="no folder"):
        write_atomically(tmp_path / "none" / "x", b"x")
    with pytest.raises(OutputError, match="cannot write"):
        write_atomically(tmp_path / LONG, b"x")
    write_atomically(tmp_path / ("x" * 255), b"x")


@posix
def test_the_mask_of_the_host_is_never_touched(tmp_path, monkeypatch):
    """`os.umask(0)` for a moment makes other threads' files writable for everybody."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("umask"))
    write_atomically(tmp_path / "out", b"x")
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "out").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError(28, "No space left")])
def test_nothing_is_left_beside(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with record_written_files() as written:
        with pytest.raises((OutputError, KeyboardInterrupt, SystemExit)):
            write_atomically(tmp_path / "out", b"x")
        assert written.files() == []
    assert os.listdir(tmp_path) == []


def test_the_journal_tells_what_is_there(tmp_path, monkeypatch):
    with record_written_files() as written:
        write_atomically(tmp_path / "a", b"x")
        replace = os.replace

        def interrupted(*names):
            replace(*names)
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "b", b"x", overwrite=True)
        assert written.files() == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_of_many_writers_one_creates(tmp_path):
    done, refused = [], []

    def write(k):
        try:
            write_atomically(tmp_path / "out", str(k).encode())
            done.append(k)
        except OutputError:
            refused.append(k)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert len(refused) == 15
    assert (tmp_path / "out").read_bytes() == str(done[0]).encode()
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("path", ["", ".", "/", "a/.."])
def test_what_has_no_name_gets_no_other_ending(path):
    assert str(with_ending("a/report.html", ".json")) == os.path.join("a", "report.json")
    if path != "a/..":  # pathlib takes the two dots for a name; they are refused as a folder
        with pytest.raises(OutputError, match=r"cannot write .*names no file"):
            with_ending(path, ".json")


def test_all_outputs_are_checked_before_the_work(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "out"
    log.touch()
    check_outputs({"--out": out, "--save": None}, [log])
    assert os.listdir(tmp_path) == ["log.csv"]
    alias = tmp_path / "alias.csv"
    alias.symlink_to(log)
    hard = tmp_path / "hard.csv"
    os.link(log, hard)
    for path in (log, tmp_path / "." / "log.csv", alias, hard):
        with pytest.raises(InputError, match=r"--out: .* is an input"):
            check_outputs({"--out": path}, [log], overwrite=True)
        with pytest.raises(InputError, match="is an input"):
            check_outputs({"--out": path}, [tmp_path / "lo*.csv"], overwrite=True)
    with pytest.raises(InputError, match="--out and --report are the same file"):
        check_outputs({"--out": out, "--report": tmp_path / "." / "out"}, [])
    with pytest.raises(InputError, match="is an input"):
        check_outputs({"--out": tmp_path / "bag" / "x"}, [tmp_path])
    with pytest.raises(OutputError, match="exists"):
        check_outputs({"--out": log}, [])


@posix
def test_a_folder_that_cannot_be_written_is_noticed_before(monkeypatch, tmp_path):
    def refuse(path, *_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OutputError, match="Read-only"):
        check_outputs({"--out": tmp_path / "x"}, [])


def test_outputs_of_a_command_appear_together_or_not_at_all(here, monkeypatch, capsys):
    arm_and_log(here, 400, 0.01)
    (here / "old.urdf").write_text("what was there before")
    before = {p.name: p.read_bytes() for p in here.iterdir()}
    sync, synced = os.fsync, []

    def full(handle):
        synced.append(handle)
        if len(synced) == room + 1:  # too large for what is left
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    outputs = ["--out", "old.urdf", "--save", "new.feasid", "--parameters", "new.csv"]
    words = ["fit", "log.csv", "--robot", "arm.urdf", "--overwrite", *outputs, "--diagnose=no"]
    room = 2  # the robot and its sidecar
    assert main([*words, "--candidates=none"]) == 2
    assert "No space left" in (said := capsys.readouterr().err)
    assert "removed again" in said
    assert {p.name: p.read_bytes() for p in here.iterdir()} == before


def test_closed_standard_output_is_no_verdict(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    command = f'{sys.executable} -m feasid check "{tmp_path}/arm.urdf" >&-'
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr


def test_files_that_belong_together_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    """Where the second finds no room, or its name taken meanwhile, the first is as it was."""
    one, two = tmp_path / "arm.c", tmp_path / "arm.h"
    one.write_bytes(b"before")
    synced, put = files._write_synced, files._put_into_place

    def full(path, content):
        if content == b"2":
            raise OSError(errno.ENOSPC, "No space left on device")
        synced(path, content)

    def taken(beside, target, overwrite):
        if target == two:
            raise FileExistsError
        put(beside, target, overwrite)

    for name, failing in (("_write_synced", full), ("_put_into_place", taken)):
        with monkeypatch.context() as patch:
            patch.setattr(files, name, failing)
            with pytest.raises(OutputError, match=r"arm\.h"):
                files.write_together({one: b"1", two: b"2"}, overwrite=True)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"arm.c": b"before"}
    files.write_together({one: b"1", two: b"2"}, overwrite=True)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    with files.record_written_files() as journal:
        files.write_together({one: b"3", two: b"4"}, overwrite=True)
    assert journal.files() == [str(one), str(two)]
    assert journal.take_back() == []
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
