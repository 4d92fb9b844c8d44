"""Steps of the GitHub action, run as they stand, and the light distribution that they install."""

import os
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).parents[1]
STEPS = [
    textwrap.dedent(step.split("    - name:")[0])
    for step in (ROOT / "action.yml").read_text().split("      run: |\n")[1:]
]

PYTHON = str(Path(sys.base_prefix) / f"bin/python3.{sys.version_info.minor}")


@cache
def build_wheel():
    """The wheel of packaging/feasid-check, in a folder that lives as long as this process."""
    folder, project = TemporaryDirectory(), ROOT / "packaging/feasid-check"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder.name]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    return folder, next(Path(folder.name).glob("*.whl"))


def install(folder):
    """The wheel's files, with NumPy, in this folder."""
    shutil.unpack_archive(build_wheel()[1], folder, "zip")
    packages = Path(np.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (folder / name).symlink_to(packages / name)


def run_step(script, folder, tmp_path, **inputs):
    """Run a step of the action as it stands, with what its first step would have installed."""
    installed = tmp_path / "runner" / "feasid"
    install(installed)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "FEASID_PYTHON": PYTHON,
        "FEASID_SOURCE": str(tmp_path / "nothing to install"), "FEASID_FILES": "*.urdf",
        "FEASID_STRICT": "false", "FEASID_SARIF": "", **inputs,
    }  # fmt: skip
    command = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
