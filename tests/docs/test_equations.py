"""The tables of equations name what exists, miss no number and know every citation."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "equations.md"

NUMBERS = {"Sousa": 84, "Wensing": 99, "Valkyrie": 37}
"""How many numbered equations each paper has."""

OTHERS = {"Wensing": ("Alg. 1", "Alg. 2", "Alg. 3", "App. G", "Lemma 1", "Theorem 2", "Theorem 3")}
"""What readers look for that has no number."""

UNTESTED = ("derivation only", "not implemented: ")

PRINTED = {
    "Sousa": {"Table": range(1, 9), "Figure": range(1, 7)},
    "Wensing": {"Table": range(1, 7), "Figure": range(1, 11)},
    "Valkyrie": {"Figure": range(1, 9)},
}
"""Tables and figures of each paper."""

NAMES = {
    "Sousa": r"Sousa and Cortes[aã]o|\[Sousa2014\]_",
    "Wensing": r"Wensing et al\. \(2024\)|Wensing, Niemeyer and Slotine",
    "Valkyrie": r"Valkyrie",
    "other": r"Wensing, Kim and Slotine|Atkeson|Lee, Wensing",
}
"""How docstrings name papers; equations of "other" ones have no table."""

LINK = r"(?: and |, |-)"
CITATION = re.compile(rf"\beqs?\. (\(\d+\)(?:{LINK}\(\d+\))*)")


def expanded(label):
    """The numbers and names of a first cell: "(2)-(4), Lemma 1" to (2), (3), (4), Lemma 1."""
    out = []
    printed = re.compile(r"(Table|Figure)s? ((?:\d+(?:-\d+)?(?:, )?)+)")
    for kind, numbers in printed.findall(label):
        for ends in re.findall(r"(\d+)(?:-(\d+))?", numbers):
            last = int(ends[1] or ends[0])
            out += [f"{kind} {n}" for n in range(int(ends[0]), last + 1)]
    label = printed.sub("", label).strip(", ")
    if not label:
        return out
    for part in re.split(r", (?=\(|[A-Z])| and (?=\()", label):
        ends = [int(n) for n in re.findall(r"\((\d+)\)", part)]
        out += [f"({n})" for n in range(ends[0], ends[-1] + 1)] if ends else [part]
    return out


@cache
def rows():
    """Paper, labels, what it says, functions or reason, tests: one tuple per row."""
    out, paper = [], None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            paper = next(p for p in NUMBERS if p in line)
        elif line.startswith("| ") and not line.startswith("| No."):
            label, says, function, test = (c.strip() for c in line.strip().strip("|").split("|"))
            out.append((paper, tuple(expanded(label)), says, function, test))
    return tuple(out)


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def resolved(path):
    """Modules of a dotted path, which is followed to its end: the named one and its origin."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        try:
            thing = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name)
        source = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
        return {module, getattr(source, "__module__", module)}
    raise ModuleNotFoundError(path)


@cache
def functions_in(file):
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def imports(module):
    """Dotted paths of the names that a module imports from the package."""
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    file = file if file.exists() else file.with_suffix("") / "__init__.py"
    found = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom))
    return {f"{node.module}.{name.name}" for node in found for name in node.names}


def fits(module, paths):
    """Whether a module has one of these functions, or imports it or its class by name."""
    own = tuple(f"{path}." for path in imports(module))
    return any(module in resolved(path) or f"{path}.".startswith(own) for path in paths)


def strings(node, outer):
    """Every string that stands alone, with those of the class and module around it."""
    has_docstring = isinstance(node, ast.Module | ast.ClassDef)
    own = ast.get_docstring(node, clean=False) if has_docstring else None
    around = [own, *outer] if own else outer
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            if isinstance(child.value.value, str):
                yield child.value.value, outer if child.value.value == own else around
        else:
            yield from strings(child, around)


def paper_of(text, start, end, outer):
    """The paper named right behind a citation, else last before it, else around it."""
    behind = re.match(r",? (?:of|in) (?:the )?", text[end:])
    for paper, pattern in NAMES.items():
        if behind and re.match(pattern, text[end + behind.end() :]):
            return paper
    for said in (text[:start], *(" ".join(o.split()) for o in outer)):
        found = [(m.start(), p) for p, pattern in NAMES.items() for m in re.finditer(pattern, said)]
        if found:
            return max(found)[1]
    return None


def citations():
    """Module, paper and label of every equation that a docstring cites."""
    for file in sorted((ROOT / "feasid").rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for raw, outer in strings(ast.parse(file.read_text()), []):
            text = " ".join(raw.split())
            for match in CITATION.finditer(text):
                paper = paper_of(text, *match.span(), outer)
                yield from ((module, paper, label) for label in expanded(match[1]))


def test_every_number_of_every_paper_has_one_row():
    for paper, last in NUMBERS.items():
        found = Counter(label for p, labels, *_ in rows() if p == paper for label in labels)
        assert [label for label, times in found.items() if times > 1] == []
        wanted = {f"({n})" for n in range(1, last + 1)}
        printed = {f"{kind} {n}" for kind, many in PRINTED[paper].items() for n in many}
        assert wanted | printed | set(OTHERS.get(paper, ())) <= set(found)
        assert {label for label in found if label.startswith("(")} == wanted


def test_rows_without_a_function_say_why():
    for _, labels, says, function, test in rows():
        assert says, labels
        if names(function) and not function.startswith(UNTESTED):
            assert names(test), f"{labels} has no test"
        else:
            assert function.startswith(UNTESTED), labels
            assert test == "", labels


def test_every_function_exists():
    for _, labels, _, function, _ in rows():
        for path in () if function.startswith(UNTESTED) else names(function):
            assert path.startswith(("feasid.", "examples.")), (labels, path)
            assert path not in resolved(path), f"{labels}: {path} is a module"


def test_every_test_exists():
    for _, labels, _, _, test in rows():
        for name in names(test):
            file, function = name.split("::")
            assert function in functions_in(file), (labels, name)


@cache
def compares(file, function):
    """Whether a test, or a function of its file that it calls, asserts something of a result."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting, seen = [function], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in defined:
            continue
        seen.add(name)
        for node in ast.walk(defined[name]):
            if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
                return True
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if called.startswith("assert_") or called == "raises":
                    return True
                waiting.append(called)
    return False


def test_every_named_test_compares_something():
    named = {name for *_, test in rows() for name in names(test)}
    assert [name for name in sorted(named) if not compares(*name.split("::"))] == []


@pytest.mark.slow
def test_the_tests_that_the_page_names_run_and_pass():
    named = sorted({f"tests/{name}" for *_, test in rows() for name in names(test)})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-m", "", *named]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert "passed" in ended.stdout.splitlines()[-1]


def test_every_citation_is_in_a_table_whose_row_names_what_the_module_has_or_uses():
    functions = {
        (paper, label): names(function)
        for paper, labels, _, function, _ in rows()
        if not function.startswith(UNTESTED)
        for label in labels
    }
    functions = {k: [n for n in v if n.startswith("feasid.")] for k, v in functions.items()}
    wrong = [
        f"{module} cites {paper} {label}"
        for module, paper, label in citations()
        if paper != "other" and not fits(module, functions.get((paper, label), ()))
    ]
    assert wrong == [], "the number is not the one meant, or its row should name the function, too"


@pytest.mark.parametrize(("text", "paper"), [
    ("eq. (7) of Sousa and Cortesao (2014)", "Sousa"),
    ("after Atkeson; the guess of eq. (7) in the Valkyrie identification paper", "Valkyrie"),
    ("Wensing, Kim and Slotine 2017, eq. (7)) or Sousa and Cortesao (2014)", "other"),
    ("Wensing et al. (2024) eq. (7); Valkyrie", "Wensing"), ("the matrix eq. (7)", None),
])  # fmt: skip
def test_citations_are_read_as_they_are_meant(text, paper):
    match = CITATION.search(text)
    assert paper_of(text, *match.span(), []) == paper
    assert expanded("(2)-(4), (7), Lemma 1") == ["(2)", "(3)", "(4)", "(7)", "Lemma 1"]
