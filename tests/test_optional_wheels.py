"""Without an optional wheel its tests are skipped, and collection goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import importlib.metadata, sys
import pytest

name = sys.argv[1]

class Hidden:
    def find_spec(self, module, path=None, target=None):
        if module.split(".")[0] == name.replace("-", "_"):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

def distribution(wanted, known=importlib.metadata.distribution):
    if wanted == name:
        raise importlib.metadata.PackageNotFoundError(wanted)
    return known(wanted)

sys.meta_path.insert(0, Hidden())
importlib.metadata.distribution = distribution
sys.exit(pytest.main(["-q", "--co", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize(
    ("wheel", "modules"),
    [
        ("mujoco", ["dynamics/test_loops.py", "closed.py"]),
        ("example-robot-data", ["dynamics/test_coupled.py"]),
    ],
)
def test_without_a_wheel_its_tests_are_skipped(wheel, modules):
    tests = Path(__file__).parent
    others = "core/test_archives.py"
    paths = [str(tests / module) for module in [*modules, others]]
    command = [sys.executable, "-c", HIDE, wheel, *paths]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tests.parent)
    assert done.returncode == 0, done.stdout[-2000:]
    assert others in done.stdout
    assert "error" not in done.stdout.lower().replace("_error", "")
    assert not any(f"{module}::" in done.stdout for module in modules)
