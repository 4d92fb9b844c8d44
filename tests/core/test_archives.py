"""Arrays of archives whose headers or texts lie."""

import io

import numpy as np
import pytest

from feasid.core.arrays import DamagedError, read_array


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


@pytest.mark.parametrize("array", [np.empty(0, "U3"), np.empty((2, 0), "U1"), np.array(["", ""])])
def test_empty_texts(array):
    np.testing.assert_array_equal(read_array(stored(array)), array)
