"""Arrays of archives whose headers or texts lie."""

import io

import numpy as np
import pytest

from feasid.core.arrays import DamagedError, read_array
from feasid.core.errors import FeasidError


def stored(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF])
def test_characters_that_do_not_exist(order, code):
    array = np.array(["abc", "de"], dtype=f"{order}U3")
    content = bytearray(stored(array))
    content[-4:] = code.to_bytes(4, "little" if order == "<" else "big")
    with pytest.raises(DamagedError, match="characters that do not exist"):
        read_array(bytes(content))
    np.testing.assert_array_equal(read_array(stored(array)), array)


@pytest.mark.parametrize("array", [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(6).astype(">i4"), np.array(3.5), np.zeros((0, 3)), np.array(["a", "bc"]),
    np.array([True, False]), np.array(["2026-01-01"], dtype="M8[ns]"),
    np.empty(0, "U3"), np.empty((2, 0), "U1"), np.array(["", ""]),
])  # fmt: skip
def test_headers_are_matched_and_never_evaluated(array):
    read = read_array(stored(array))
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    assert read.flags["F_CONTIGUOUS"] == array.flags["F_CONTIGUOUS"]


@pytest.mark.parametrize(("old", "new"), [
    (b"(2, 3)", b"(9**9,"), (b"(2, 3)", b"(99999999999,)"), (b"'<f8'", b"'|O8'"),
    (b"'<f8'", b"'<f9'"), (b"'<f8'", b"'f8,f8'"), (b"\x93", b"\x92"),
])  # fmt: skip
def test_headers_that_lie_take_no_memory(old, new):
    with pytest.raises((DamagedError, FeasidError)):
        read_array(stored(np.arange(6.0).reshape(2, 3)).replace(old, new, 1))
