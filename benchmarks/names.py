"""How functions are named: verbs and nouns, or bare participles that do not say what is returned.

    python benchmarks/names.py [--list] [FOLDER]

A bare participle is a name of one word, leading underscores aside, that is a past participle:
``told``, ``_kept``, ``weighted``. It is right for a copy of the object that it belongs to
(``robot.scaled(2)``) and unclear elsewhere. Words that are also the verb itself (``read``, ``set``,
``split``) are not counted. ``of`` is counted on its own.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

IRREGULAR = re.compile(
    "bent|bound|bought|brought|built|caught|chosen|come|done|drawn|driven|"
    "fallen|felt|forgotten|found|given|gone|grown|heard|held|hidden|kept|"
    "known|laid|led|left|lost|made|meant|met|paid|said|seen|sent|shown|"
    "sought|sold|spent|spoken|spun|stood|struck|sunk|taken|taught|thought|"
    "thrown|told|torn|understood|woken|won|worn|wound|written"
)
"""Past participles that do not end in -ed and differ from the verb."""

NOT_PARTICIPLES = {"bed", "embed", "exceed", "feed", "need", "red", "seed", "shed", "speed"}


def is_bare_participle(name: str) -> bool:
    """Whether a function's name is one past participle."""
    word = name.strip("_")
    if IRREGULAR.fullmatch(word):
        return True
    return word.isalpha() and word.endswith("ed") and word not in NOT_PARTICIPLES


def function_names(folder: Path) -> list[tuple[str, str]]:
    """Every function and method without dunders, as (file, name)."""
    return [
        (str(path.relative_to(folder)), node.name)
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("__")
    ]


def main() -> None:
    """Print the counts; with --list every name that is counted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    package = Path(__file__).resolve().parents[1] / "feasid"
    parser.add_argument("folder", nargs="?", type=Path, default=package)
    parser.add_argument("--list", action="store_true", help="every counted name and its file")
    given = parser.parse_args()
    names = function_names(given.folder)
    bare = [(file, name) for file, name in names if is_bare_participle(name)]
    count = Counter(name for _, name in names)
    print(f"{len(names)} functions and methods in {given.folder}")
    print(f"{len(bare)} bare participles ({100 * len(bare) / len(names):.1f} %)")
    print(f"{count['of']} called 'of'")
    if given.list:
        for file, name in sorted(bare):
            print(f"  {file}: {name}")


if __name__ == "__main__":
    main()
