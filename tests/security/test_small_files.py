"""Small files and numbers that stand for something that cannot be."""

import io
import struct
import zipfile

import pytest
from robots import ARM

import feasid
from feasid.core.arrays import read_array
from feasid.errors import FeasidError, InputError

KINDS = ["|S0", "<U0", "<M8[0s]", "<M8[999999999s]", "<m8[7s]"]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_odd_kinds_are_refused(kind, tmp_path):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (2,), }}\n".encode()
    size = 0 if kind[2:] == "0" else 16
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(size)
    with pytest.raises(ValueError):  # noqa: PT011
        read_array(content)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("t.npy", content)
    (tmp_path / "log.npz").write_bytes(packed.getvalue())
    with pytest.raises(FeasidError):
        feasid.read_log(tmp_path / "log.npz")


@pytest.mark.parametrize(
    "option",
    [
        {"window": 10**12},
        {"block": 10**9},
        {"window": 10**8, "block": 1},
        {"derivative_cutoff": 1e-3},
    ],
)
def test_an_online_fit_has_limits(option):
    with pytest.raises(InputError):
        feasid.OnlineFit(feasid.load_robot(ARM), 1000.0, **option)
