"""Small files and numbers that stand for something that cannot be."""

import io
import json
import struct
import subprocess
import sys
import zipfile
from itertools import product

import numpy as np
import pytest
from robots import ARM

import feasid
from feasid.core.arrays import read_array
from feasid.core.errors import FeasidError, InputError

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
        *({"window": 10**12}, {"block": 10**9}, {"window": 10**8, "block": 1}),
        *({"derivative_cutoff": 1e-3}, {"cutoff": 1e-320}),
    ],
)
def test_an_online_fit_has_limits(option):
    with pytest.raises(InputError):
        feasid.OnlineFit(feasid.load_robot(ARM), 1000.0, **option)


LOOP = {"name": "l", "first": "upper", "second": "base", "kind": "connect"}
LARGE = 10**400
TABLES = [
    {"version": LARGE},
    *({"loops": [LOOP | {f"{end}_position": [LARGE, 0, 0]}]} for end in ("first", "second")),
    {"loops": [LOOP | {"first_position": [0, 0, 0], "first_rotation": [[LARGE] * 3] * 3}]},
    {"couplings": [{"joint": "slide", "factors": {"shoulder": LARGE}}]},
    {"couplings": [{"joint": "slide", "factors": {"shoulder": 1.0}, "offset": LARGE}]},
    {"configuration": {"slide": LARGE}},
    {"parallelograms": [{"shoulder": "slide", "elbow": "shoulder", "reach": [LARGE, 0, 0]}]},
]


@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_a_table_of_loops_with_a_number_beyond_doubles_is_named(table, tmp_path):
    robot = tmp_path / "arm.urdf"
    robot.write_text(ARM)
    content = {"format": "feasid loops", "version": 1} | table
    (tmp_path / "arm.urdf.loops.json").write_text(json.dumps(content))
    with pytest.raises(FeasidError, match=r"arm\.urdf\.loops\.json"):
        feasid.load_robot(robot)


LIMITED = """
import resource, sys
import feasid
feasid.read_log(sys.argv[1])
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**29, now + 2**29))
try:
    feasid.read_log(sys.argv[2])
except feasid.FeasidError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory")
def test_a_parquet_page_that_lies_about_its_size_is_refused(tmp_path):
    """Its header, which Arrow alone reads, says that it unpacks to 2 GB: more than there is."""
    arrow, parquet = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    table = arrow.table({"t": np.linspace(0, 1, 500), "q_a": np.linspace(0, 1, 500) ** 2})
    options = {"compression": "snappy", "use_dictionary": False, "write_statistics": False}
    parquet.write_table(table, tmp_path / "log.parquet", **options)
    content = (tmp_path / "log.parquet").read_bytes()
    last = parquet.read_metadata(tmp_path / "log.parquet").row_group(0).column(1)
    start = last.data_page_offset
    stop = start + last.total_compressed_size
    page = content[start:stop]
    unpacked = (4 + 8 * 500 + k for k in range(64))  # levels of a column that may be empty
    packed = (len(page) - k for k in range(64))  # what stands before it is its header
    sizes = [(u, p) for u, p in product(unpacked, packed) if page[2:].startswith(header(u, p))]
    longer = len(header(2**31 - 1, 0)) - len(header(4000, 0))
    u, p = sizes[0]
    page = page[:2] + header(2**31 - 1, p - longer) + page[2 + len(header(u, p)) :]
    (tmp_path / "lies.parquet").write_bytes(content[:start] + page + content[stop:])
    paths = [str(tmp_path / name) for name in ("log.parquet", "lies.parquet")]
    done = subprocess.run([sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "lies.parquet: damaged or no Parquet file, or larger than the free memory" in done.stdout


def header(unpacked, packed):
    """Two sizes as Thrift's compact protocol writes them."""
    out = b""
    for size in (unpacked, packed):
        number, out = 2 * size, out + b"\x15"
        while number >= 128:
            out, number = out + bytes([number % 128 + 128]), number // 128
        out += bytes([number])
    return out
