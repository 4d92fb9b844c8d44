"""The house stands as docs/design.md draws it: imports point one way, and stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import feasid

SOURCE = Path(feasid.__file__).parent

ORDER = (
    "errors",
    "files",
    "threads",
    "robot",
    "dynamics",
    "identifiability",
    "logs",
    "feasibility",
    "statistics",
    "gather",
    "result",
    "identify",
    "inspection",
    "datasets",
    "plots",
    "report",
    "page",
    "cli",
    "__main__",
)
"""A package imports, when it is loaded, only from itself and what stands before it."""


def imported_at_load(path):
    """Packages of ours that a module imports outside functions and type checking."""
    tree = ast.parse(path.read_text())
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "feasid":
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            yield from names
        elif isinstance(node, ast.Try):
            waiting += node.body


def package_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_point_upward(path):
    package = package_of(path)
    if package == "__init__":
        return
    allowed = set(ORDER[: ORDER.index(package) + 1])
    assert set(imported_at_load(path)) <= allowed


def test_every_module_is_in_the_order():
    found = {package_of(p) for p in SOURCE.rglob("*.py")} - {"__init__"}
    assert found <= set(ORDER)


def loaded_by(code):
    """Top-level modules in sys.modules after running `code` in a fresh interpreter."""
    program = f"{code}\nimport sys; print(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_is_light():
    heavy = {"numpy", "scipy", "pandas", "cvxpy", "clarabel", "scs", "matplotlib"}
    assert not loaded_by("import feasid, feasid.cli") & heavy


def test_regressor_needs_no_solver_and_no_pandas():
    code = "import feasid; feasid.regressor(feasid.Robot.from_dh([(0,1,0,0)]), [0], [0], [0])"
    assert not loaded_by(code) & {"pandas", "cvxpy", "clarabel", "matplotlib"}


def test_public_names_exist():
    for name in feasid.__all__:
        assert getattr(feasid, name) is not None
    assert dir(feasid) == feasid.__all__
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        feasid.fitt  # noqa: B018
