"""Which published robot models are infeasible? Every URDF of the example-robot-data wheel, judged.

    pip install "feasid[test]"               # for no files; pip install feasid for your own
    python examples/check_models.py [FILE ...]

Prints a verdict per file: infeasible links (exact arithmetic on the file's decimals),
infeasible moving bodies, and what MuJoCo's own compiler says of the same file without its meshes.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from feasid.applications.inspection.file_check import FileCheck, check_file
from feasid.core.errors import FeasidError


class Row(NamedTuple):
    """One file: our verdict, the links concerned, and MuJoCo's answer."""

    path: Path
    status: str
    infeasible: tuple[str, ...]
    boundary: tuple[str, ...]
    bodies: int
    mujoco: str


def example_files() -> list[Path]:
    """All URDF files of the example-robot-data wheel."""
    try:
        wheel = distribution("example-robot-data")
    except PackageNotFoundError:
        sys.exit('check_models.py needs files, or example-robot-data: pip install "feasid[test]"')
    return sorted(Path(str(wheel.locate_file(f))) for f in wheel.files or () if f.suffix == ".urdf")


def rows(files: Sequence[Path]) -> Iterator[Row]:
    """Judge the files one by one."""
    for path in files:
        try:
            report = check_file(path)
        except FeasidError as error:
            message = str(error).removeprefix(f"{path}:")
            yield Row(path, "error", (), (), 0, message)
            continue
        yield _row(path, report)


def _row(path: Path, report: FileCheck) -> Row:
    infeasible = tuple(r.link.name for r in report.infeasible)
    boundary = tuple(r.link.name for r in report.links if r.verdict.status == "boundary")
    bodies = sum(b.verdict.status == "infeasible" for b in report.bodies)
    return Row(path, report.status, infeasible, boundary, bodies, mujoco_says(path))


def mujoco_says(path: Path) -> str:
    """MuJoCo's refusal of the file, "loads", or "-" where MuJoCo is not installed."""
    try:
        import mujoco
    except ImportError:
        return "-"
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    shape = r"<(visual|collision)\b(?:[^>]*/>|.*?</\1>)"
    try:
        mujoco.MjModel.from_xml_string(re.sub(shape, "", text, flags=re.DOTALL))
    except ValueError as error:
        name = re.search(r"Element name '([^']*)'", str(error))
        reason = re.sub(r"\s+", " ", str(error).split("\n")[0]).removeprefix("Error: ")
        return f"{reason} ({name[1]})" if name else reason
    return "loads"


def main(arguments: Sequence[str]) -> list[Row]:
    """Print the table; returns its rows."""
    files = [Path(a) for a in arguments] or example_files()
    start = time.perf_counter()
    for path in files:
        with contextlib.suppress(FeasidError):
            check_file(path)
    seconds = time.perf_counter() - start
    table = list(rows(files))
    print(f"{'model':34}  {'verdict':10}  {'links':>5}  {'bodies':>6}  MuJoCo")
    for row in table:
        links = len(row.infeasible) or ""
        bodies = row.bodies or ""
        print(
            f"{row.path.stem[:34]:34}  {row.status:10}  {links!s:>5}  {bodies!s:>6}  {row.mujoco}"
        )
    counts = Counter(row.status for row in table)
    links = sum(len(row.infeasible) for row in table)
    print(f"\n{len(table)} files: " + ", ".join(f"{n} {s}" for s, n in counts.items()), end="; ")
    print(f"{links} links are infeasible; judged in {seconds:.2f} s")
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
