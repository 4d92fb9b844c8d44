"""Which modules of feasid are in the wheel of the check: found by following imports.

A module can be in it if NumPy and the standard library are enough to import it. In it are, of
these, all that the command imports, at once or inside a function, and what those import in turn.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STARTS = ("feasid.cli.check", "feasid.robot.formats")
AVAILABLE = {"feasid", "numpy", *sys.stdlib_module_names}
PLACE = re.compile(r"(feasid(?:\.\w+)+)(?::\w+)?")  #: Modules that are named in text.


class CustomBuildHook(BuildHookInterface[Any]):
    """Put the modules into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name every file and its place in the wheel."""
        repository = Path(self.root).parents[1]
        places = {path: f"feasid_check/source/{path}" for path in reached_files(repository)}
        places[Path("LICENSE")] = "feasid_check/LICENSE"
        build_data["force_include"] |= {str(repository / k): v for k, v in places.items()}


def reached_files(repository: Path) -> Iterator[Path]:
    """Paths in the repository of the modules, and of the files that lie beside them."""
    modules = Modules(repository)
    for name in sorted(modules.reached()):
        path = modules.paths[name]
        yield path.relative_to(repository)
        if path.name == "__init__.py":
            beside = (p for p in path.parent.glob("*") if not (p / "__init__.py").exists())
            files = (f for p in beside for f in ([p] if p.is_file() else p.rglob("*")))
            kinds = (".html", ".css", ".js", ".typed")
            yield from (f.relative_to(repository) for f in files if f.suffix in kinds)


class Modules:
    """Modules of feasid and what they import."""

    def __init__(self, repository: Path) -> None:
        self.paths = {
            ".".join(p.relative_to(repository).with_suffix("").parts).removesuffix(".__init__"): p
            for p in (repository / "feasid").rglob("*.py")
        }

    @cached_property
    def at_once(self) -> dict[str, set[str]]:
        """By module, what is imported together with it."""
        return {name: set(self._imports(name, inside=False)) for name in self.paths}

    @cached_property
    def unavailable(self) -> set[str]:
        """Modules that need more than NumPy when they are imported."""
        heavy = {
            name
            for name, needs in self.at_once.items()
            if {n.split(".")[0] for n in needs} - AVAILABLE
        }
        while more := {n for n, needs in self.at_once.items() if needs & heavy} - heavy:
            heavy |= more
        return heavy

    def reached(self) -> set[str]:
        """Modules that the check imports, at once or later."""
        formats = (n for n in self.paths if n.startswith(STARTS[1]) and n.count(".") == 3)
        packages = {n for n in formats if self.paths[n].name == "__init__.py"}
        new, reached = {*STARTS, *packages}, set[str]()
        while new := (new - reached - self.unavailable) & self.paths.keys():
            reached |= new
            new = {n for name in new for n in self._imports(name, inside=True)}
        return reached

    def _imports(self, name: str, *, inside: bool) -> Iterator[str]:
        """Names that a module imports, and those above them; `inside` functions, too."""
        body = ast.parse(self.paths[name].read_text(encoding="utf-8")).body
        for node in _executed(body, inside):
            names: Iterable[str] = ()
            if isinstance(node, ast.Import):
                names = (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = (str(node.module), *(f"{node.module}.{a.name}" for a in node.names))
            elif inside and isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = (match[1] for match in [PLACE.fullmatch(node.value)] if match)
            for imported in names:
                parts = imported.split(".")
                above = {".".join(parts[: k + 1]) for k in range(len(parts))}
                # What is no module is a name in one.
                yield from above & self.paths.keys() if parts[0] == "feasid" else above


def _executed(body: Iterable[ast.AST], inside: bool) -> Iterator[ast.AST]:
    """The nodes that run; those of functions only if `inside`."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        if inside or not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from _executed(ast.iter_child_nodes(node), inside)
