"""Hostile files are refused or read with little work and 512 MB, and open nothing else.

Each runs in a process of its own whose address space grows by at most the limit, with an audit
hook on every file and socket that is opened. Work is counted in function calls, of Python and of C,
so that a busy machine changes nothing; a limit of CPU time only ends what would never end.
"""

import json
import subprocess
import sys

import pytest
from robots import ARM
from sdf_files import deep_frames

CALLS, CALLS_PER_BYTE = 40_000, 30
"""Function calls that a file may cost: about twice as many as a small one (19 364) and the dearest
large one (14 for each byte, of frames placed by each other)."""

MEGABYTES = 512

CPU_SECONDS = 100  #: After which the system ends a process that hangs in a single call.

CHILD = """
import json, resource, sys
from feasid.cli import main
import encodings.utf_16_le
import importlib, pkgutil, feasid.robot.formats
for module in pkgutil.walk_packages(feasid.robot.formats.__path__, "feasid.robot.formats."):
    importlib.import_module(module.name)
path, warm = sys.argv[1], sys.argv[3]
main(["check", warm])  # imports what it needs
EVENTS = ("open", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system")
opened, watching = [], True
def hook(event, arguments):
    if watching and event in EVENTS and not isinstance(arguments[0], int):  # by handle
        opened.append(str(arguments[0]))
sys.addaudithook(hook)
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
opened.clear()
limit = now + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[4]), int(sys.argv[4])))
calls = [0]
def count(frame, event, argument):
    calls[0] += event in ("call", "c_call")
sys.setprofile(count)
status = main(["check", path])
sys.setprofile(None)
watching = False
with open("/proc/self/status") as file:  # ru_maxrss would count the parent's memory, too
    peak = next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))
others = [p for p in opened if p != path]
print(json.dumps([status, calls[0], peak, others]), file=sys.stderr)
"""

DEEP = "<robot>" + "<a>" * 200_000
ENTITIES = "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)
BOMB = (
    f'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">{ENTITIES}]><robot name="x"><link name="&j;"/></robot>'
)
SYSTEM = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>'
PARAMETER = '<!DOCTYPE r SYSTEM "http://localhost:9/x.dtd"><robot name="x"/>'
JOINT = '<joint name="j{0}" type="revolute"><parent link="l{0}"/><child link="l{1}"/></joint>'
LINKS = "".join(f'<link name="l{k}"/>' for k in range(3001))
JOINTS = "".join(JOINT.format(k, k + 1) for k in range(3000))
CHAIN = f"<robot name='c'>{LINKS}{JOINTS}</robot>"
SDF_CHAIN = deep_frames(3000)
ATTRIBUTES = " ".join(f'a{k}=""' for k in range(150_000))
MASS = '<mass value="1.25"/>'

FILES = {
    "billion laughs": (BOMB, 2, "document type"),
    "external entity": (SYSTEM, 2, "document type"),
    "external dtd": (PARAMETER, 2, "document type"),
    "200 000 levels": (DEEP, 2, "nested deeper"),
    "a million elements": (("<robot>", "<a/>", 1_200_000, "</robot>"), 2, "more elements"),
    "a huge tag": (('<robot name="', "x", 60_000_000, '"/>'), 2, "longer than"),
    "many attributes": (f"<robot {ATTRIBUTES}/>", 2, "longer than"),
    "60 MB of text": (("<robot>", "x", 60_000_000, "</robot>"), 2, "no links"),
    "66 MB": (("<robot>", "x", 70_000_000, "</robot>"), 2, "larger than"),
    "nan": (ARM.replace(MASS, '<mass value="nan"/>'), 2, "not a finite number"),
    "1e999": (ARM.replace(MASS, '<mass value="1e999"/>'), 2, "exponent"),
    "1e-999999999": (ARM.replace(MASS, '<mass value="1e-999999999"/>'), 2, "exponent"),
    "a long number": (ARM.replace(MASS, f'<mass value="{"9" * 100_000}"/>'), 2, "longer than 256"),
    "decimal comma": (ARM.replace(MASS, '<mass value="1,5"/>'), 2, "comma"),
    "duplicate link": (ARM.replace('link name="rod"', 'link name="upper"'), 2, "twice"),
    "cycle": (ARM.replace('parent link="base"', 'parent link="wheel"'), 2, "cycle"),
    "cut": (ARM[:200], 2, "not well-formed"),
    "not text": ("\x00\x01\x02", 2, "no XML"),
    "3000 links": (CHAIN, 0, "feasible"),
    "3000 frames of SDF": (SDF_CHAIN, 0, "feasible"),
    "mass -1": (ARM.replace(MASS, '<mass value="-1"/>'), 1, "mass-negative"),
    "include of a device": ('<mujoco><include file="/dev/zero"/></mujoco>', 2, "outside"),
    "include upwards": ('<mujoco><include file="../../etc/passwd"/></mujoco>', 2, "outside"),
    "meshes elsewhere": (
        ARM.replace(
            '<link name="wheel"/>',
            '<link name="wheel"><collision><geometry><mesh filename="file:///etc/passwd"/></geometry>'
            '</collision><visual><geometry><mesh filename="http://localhost:9/x"/></geometry></visual>'
            "</link>",
        ),
        0,
        "feasible",
    ),
}  # fmt: skip
"""Text, or one piece of it so many times between two others; exit status; words of the output."""


def checked(path):
    warm = path.with_name("warm.urdf")
    warm.write_text(ARM)
    command = [sys.executable, "-c", CHILD, *map(str, (path, MEGABYTES, warm, CPU_SECONDS))]
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    limits = {"timeout": 10 * CPU_SECONDS, "env": environment}
    done = subprocess.run(command, capture_output=True, text=True, **limits)
    last = done.stderr.strip().splitlines()[-1]
    try:
        return *json.loads(last), done.stdout + done.stderr
    except ValueError:
        pytest.fail(done.stderr)


@pytest.mark.sampled(0.15)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_costs_little_and_opens_nothing(name, tmp_path):
    text, expected, words = FILES[name]
    if isinstance(text, tuple):
        head, piece, times, end = text
        text = head + piece * times + end
    path = tmp_path / "model.urdf"
    path.write_bytes(text.encode())
    status, calls, peak, others, output = checked(path)
    assert status == expected, output[-500:]
    assert words in output
    assert calls < CALLS + CALLS_PER_BYTE * path.stat().st_size
    assert peak < MEGABYTES
    assert others == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
def test_utf_16_is_read(tmp_path):
    path = tmp_path / "model.urdf"
    path.write_bytes(ARM.encode("utf-16"))
    status, calls, _, others, _ = checked(path)
    assert (status, others) == (0, [])
    assert calls < CALLS + CALLS_PER_BYTE * path.stat().st_size
