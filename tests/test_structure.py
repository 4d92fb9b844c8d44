"""The structure that docs/design.md describes: layers, sizes, values and light imports."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import feasid

SOURCE = Path(feasid.__file__).parent

LAZY = {
    "feasid.parameters.identifiability.base": "pictures",
    "feasid.parameters.identifiability.views": "pictures",
    "feasid.parameters.feasibility.check": "pictures",
    "feasid.identification.assessment.simulation": "pictures",
    "feasid.applications.inspection.whole_robot": "pandas and the nullspace, for a mass matrix",
    "feasid.parameters.feasibility.least_squares": "the proof of optimality, when it is asked for",
    "feasid.identification.effects.log_findings": "logs of floating bases",
    "feasid.identification.fitted": "certificate, verdict and contact, when they are asked for",
    "feasid.identification.fit": "robust weights, where options ask for them",
    "feasid.identification.request": "servos, where logs hold commands",
    "feasid.identification.prediction": "simulation, and the comparison of several logs",
    "feasid.identification.uncertainty.ranges": "regions and their proofs, when asked for",
    "feasid.applications.online.problem": "corrections, when a description cannot exist",
    "feasid.results.fit": "what writes, draws, samples and saves, when it is asked for",
    "feasid.options.spelling": "the tables, where a message is spelled",
    "feasid.applications.load": "what a file turns out to hold",
}
"""Modules that import ours inside functions, and why; besides them only the command line."""

LONGEST_MODULE = 600
LONGEST_FUNCTION = 60

LONG_FUNCTIONS: dict[str, str] = {}
"""Functions with longer bodies, docstrings not counted, and why."""

WRITTEN = {
    "SearchClock": "how much of a budget is left",
    "SearchPoint": "the best motion so far",
    "Minimiser": "where the next minimiser is sought from",
    "_SearchStrategy": "what a way of searching has brought so far",
    "Search": "the state of a search",
    "MotionTally": "what of a log is left out, while it is read",
    "JointTrack": "a topic of a bag, while it is read",
    "Element": "XML that is edited in its own text",
}
"""Dataclasses that change, and what they are; all others are values."""


def name_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules():
    return {name_of(p): ast.parse(p.read_text()) for p in sorted(SOURCE.rglob("*.py"))}


def checking_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(node, in_function=False):
    """(imported module of ours, whether inside a function), without those for type checking."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "feasid":
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield (inner if inner in modules() else node.module), in_function
    elif isinstance(node, ast.Import):
        yield from ((a.name, in_function) for a in node.names if a.name in modules())
    children = ast.iter_child_nodes(node)
    if checking_types(node) and not isinstance(node.test, ast.UnaryOp):
        children = node.orelse
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in children:
        yield from imports(child, inside)


def test_imports_keep_the_layers_and_make_no_circles(monkeypatch):
    """The contracts of import-linter in pyproject.toml, imports for type checking included."""
    use_cases = pytest.importorskip("importlinter.application.use_cases")
    configuration = pytest.importorskip("importlinter.configuration")
    configuration.configure()
    monkeypatch.chdir(Path(__file__).parents[1])
    assert use_cases.lint_imports(config_filename="pyproject.toml", cache_dir=None)


def test_lazy_imports_are_on_the_list():
    lazy = {m for m, tree in modules().items() if any(inside for _, inside in imports(tree))}
    lazy = {m for m in lazy if not m.startswith("feasid.cli") and m != "feasid"}
    assert lazy == set(LAZY)


@pytest.mark.parametrize("module", sorted(modules()))
def test_modules_are_short(module):
    path = SOURCE.parent / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE


def body_length(function):
    body = function.body if ast.get_docstring(function) is None else function.body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_fit_on_a_screen():
    long = {
        f"{module}.{node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and body_length(node) > LONGEST_FUNCTION
    }
    assert long == set(LONG_FUNCTIONS)


def test_the_certificate_checker_needs_the_standard_library_only():
    for node in ast.walk(modules()["feasid.certificate"]):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert all(n.split(".")[0] in sys.stdlib_module_names for n in names)


def test_no_private_names_of_a_library():
    """Attributes and names that start with one underscore belong to whoever defined them."""
    ours = {"_replace", "_asdict", "_fields"}
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("feasid"):
                names = {*node.module.split("."), *(a.name for a in node.names)} - {"__future__"}
                assert not [n for n in names if n.startswith("_")]
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                if node.attr.startswith("__") or node.attr in ours:
                    continue
                base = node.value
                assert isinstance(base, ast.Name), ast.unparse(node)


def test_no_two_classes_share_a_name():
    names = [
        node.name
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(names) == sorted(set(names))


def dataclasses():
    """Every dataclass: its name, the decorator's arguments and the names of its fields' types."""
    for tree in modules().values():
        for node in tree.body:
            for mark in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                called = mark.func if isinstance(mark, ast.Call) else mark
                if isinstance(called, ast.Name) and called.id == "dataclass":
                    given = {k.arg: k.value.value for k in getattr(mark, "keywords", ())}
                    types = [f.annotation for f in node.body if isinstance(f, ast.AnnAssign)]
                    parts = [n for t in types for n in ast.walk(t)]
                    held = {getattr(n, "id", getattr(n, "attr", "")) for n in parts}
                    yield node.name, given, held


def test_dataclasses_are_values():
    assert {name for name, given, _ in dataclasses() if not given.get("frozen")} == set(WRITTEN)


def test_dataclasses_that_hold_arrays_are_equal_to_themselves_only():
    """Compared field by field, arrays have no truth value and no hash."""
    arrays = {"Array", "Mask", "Rows", "NDArray"}
    assert not {
        name for name, given, held in dataclasses() if held & arrays and given.get("eq", True)
    }


def loaded_by(code):
    """Top-level modules in sys.modules after running `code` in a fresh interpreter."""
    program = f"{code}\nimport sys; print(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_is_light():
    heavy = {"numpy", "scipy", "pandas", "cvxpy", "clarabel", "scs", "matplotlib"}
    assert not loaded_by("import feasid, feasid.cli") & heavy


@pytest.mark.parametrize(
    "code",
    [
        "import feasid; feasid.regressor(feasid.Robot.from_dh([(0,1,0,0)]), [0], [0], [0])",
        "import feasid.parameters.identifiability.base",
    ],
)
def test_dynamics_and_identifiability_need_no_solver_and_no_pandas(code):
    assert not loaded_by(code) & {"pandas", "cvxpy", "clarabel", "matplotlib"}


def test_public_names_exist():
    for name in feasid.__all__:
        assert getattr(feasid, name) is not None
    assert dir(feasid) == feasid.__all__
    with pytest.raises(AttributeError, match=r"'fitt' \(did you mean 'fit'"):
        feasid.fitt  # noqa: B018


def test_a_type_checker_knows_exactly_the_public_names():
    tree = modules()["feasid"]
    block = next(n for n in tree.body if checking_types(n))
    seen = {alias.asname for node in block.body for alias in node.names}
    assert seen == set(feasid.__all__) - {"__version__"}


MOST_ENTRIES = 14
"""What a visitor reads in one look."""


def test_the_package_has_few_entries():
    entries = {p.name for p in SOURCE.iterdir() if not p.name.startswith((".", "__pycache__"))}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def rooms():
    """Packages that hold modules of their own, by the folder that tests them."""
    folders = {p.parent for p in SOURCE.rglob("*.py") if p.name != "__init__.py"}
    return sorted({p.relative_to(SOURCE).parts[:2][-1] for p in folders - {SOURCE}})


@pytest.mark.parametrize("room", rooms())
def test_every_room_has_a_folder_of_tests(room):
    assert [*(Path(__file__).parent / room).glob("test_*.py")]
