"""Steps of the GitHub action, run as they stand."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
STEPS = [
    textwrap.dedent(step.split("    - name:")[0])
    for step in (ROOT / "action.yml").read_text().split("      run: |\n")[1:]
]


def run_step(script, folder, tmp_path, **inputs):
    """Run a step of the action as it stands, with what its first step would have installed."""
    installed = tmp_path / "runner" / "feasid"
    installed.mkdir(parents=True, exist_ok=True)
    packages = [ROOT / "feasid", Path(np.__file__).parent]
    packages += Path(np.__file__).parent.parent.glob("numpy.libs")
    for package in packages:
        (installed / package.name).symlink_to(package)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "FEASID_PYTHON": str(Path(sys.base_prefix) / f"bin/python3.{sys.version_info.minor}"),
        "FEASID_SOURCE": str(tmp_path / "nothing to install"), "FEASID_FILES": "*.urdf",
        "FEASID_STRICT": "false", "FEASID_SARIF": "", **inputs,
    }  # fmt: skip
    command = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
