"""What ends a process while it writes: outputs stay whole."""

import os
import re
import signal
import subprocess
import sys

import pytest

from feasid.core.files import write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

KILLED = """
import os, signal, sys
from feasid.core.files import write_atomically
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], b"new", overwrite=True)
"""


@pytest.mark.parametrize("signal_name", ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGXCPU"])
@pytest.mark.parametrize("name", ["open", "fsync", "link", "unlink"])
def test_a_signal_while_a_file_is_written_waits_until_nothing_is_left_beside_it(
    monkeypatch, tmp_path, name, signal_name
):
    number = getattr(signal, signal_name)

    class Stopped(BaseException):
        pass

    def stop(*_):
        raise Stopped

    honest, before = getattr(os, name), signal.signal(number, stop)

    def signalled(*arguments, **options):
        signal.raise_signal(number)
        return honest(*arguments, **options)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, signalled)
            with pytest.raises(Stopped):
                write_atomically(tmp_path / "out", b"whole")
        assert os.listdir(tmp_path) == ["out"]
        assert (tmp_path / "out").read_bytes() == b"whole"
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)


def test_a_kill_leaves_the_output_as_it_was_and_a_file_that_can_be_deleted(tmp_path):
    out = tmp_path / "out"
    out.write_bytes(b"old")
    assert subprocess.run([sys.executable, "-c", KILLED, out]).returncode == -signal.SIGKILL
    assert out.read_bytes() == b"old"
    beside = [name for name in os.listdir(tmp_path) if name != "out"]
    assert re.fullmatch(r"\.feasid-[0-9a-f]{16}", " ".join(beside))
