"""Do the gallery's notebooks run with nothing but the wheel?

    python -m benchmarks.notebooks [NAME ...]

The wheel is built and put into an empty folder; what it depends on comes from this environment, in
which the extras that the notebooks name have to be. Each notebook runs in a folder of its own,
without the repository on the path. The cell that installs is left out, because the package is on no
index yet. Needs the extras "docs" and "test".
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbclient
import nbformat

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

SECONDS = 900  #: For one cell.


def install_wheel(folder: Path) -> None:
    """Build the wheel and put its files into a folder."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)


def run_notebook(book: nbformat.NotebookNode, site: Path) -> str:
    """Run a notebook in an empty folder; what went wrong, or nothing."""
    (install,) = (k for k, cell in enumerate(book.cells) if cell.source.startswith("%pip install"))
    del book.cells[install]
    where = "import feasid, pathlib\nassert pathlib.Path(feasid.__file__).is_relative_to({!r})"
    book.cells.insert(0, nbformat.v4.new_code_cell(where.format(str(site))))
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            book, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except nbclient.exceptions.CellExecutionError as error:
            return str(error).strip().splitlines()[-1]
    return ""


def main() -> int:
    """Print a line for each notebook; returns 1 if one failed."""
    import _gallery

    failed = 0
    with tempfile.TemporaryDirectory() as name:
        install_wheel(Path(name))
        os.environ["PYTHONPATH"] = str(Path(name) / "site")
        os.environ["PYTHONSAFEPATH"] = "1"
        for title, book in _gallery.notebooks().items():
            if sys.argv[1:] and title not in sys.argv[1:]:
                continue
            start = time.perf_counter()
            trouble = run_notebook(book, Path(name) / "site")
            failed += bool(trouble)
            print(
                f"{title:14} {time.perf_counter() - start:6.1f} s  {trouble or 'runs'}", flush=True
            )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
