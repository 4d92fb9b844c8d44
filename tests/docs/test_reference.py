"""The reference is complete: every public name says what it takes, gives and refuses."""

import dataclasses
import inspect
import re
from functools import cached_property

import pytest

import feasid

REFUSES_NOTHING = {
    "Prior.covariance": "algebra of a problem that was made before",
    "Prior.evidence": "algebra of a problem that was made before",
    "Prior.divergence": "returns a constant", "Prior.rows": "returns no rows",
    "Prior.clip_weight": "returns its argument",
    "FittedModel.errors_of": "of data that were reduced before", "Reduced.residuals": "a product",
    "Reduced.with_shifted_torques": "a product", "Reduced.with_notes": "takes any text",
    "Trajectory.jerk": "a product",
}  # fmt: skip
"""Methods with parameters that raise no errors of their own, and why."""

SHAPED = ("Array", "pd.", "[")
"""Parts of return types that have shapes, columns or keys to tell; a method may return what its
type says and its first line."""


def sections(doc):
    """Text of each section of a NumPy docstring by its heading."""
    parts = re.split(r"^(\S[^\n]*)\n-{3,}$", doc, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(text):
    """Names that a section explains: lines that are not indented, up to a colon."""
    heads = [line.partition(" : ")[0] for line in text.split("\n") if line[:1].strip()]
    return {name.strip(" *") for head in heads for name in head.split(",")}


def public_classes():
    values = [getattr(feasid, name) for name in feasid.__all__]
    values += [getattr(feasid.floating, name) for name in feasid.floating.__all__]
    return [v for v in values if inspect.isclass(v)]


def bases(kind):
    return [k for k in kind.__mro__ if k.__module__.startswith("feasid")]


def function_of(value):
    """The function behind a method, however it is bound; None for what is none."""
    value = getattr(value, "__func__", value)
    return value if inspect.isfunction(value) else None


def public_functions():
    """Public functions and the public methods of public classes by the class that has them."""
    places = [(feasid, n) for n in feasid.__all__]
    places += [(feasid.floating, n) for n in feasid.floating.__all__]
    found = {n: f for m, n in places if (f := function_of(getattr(m, n))) is not None}
    for kind in {base for c in public_classes() for base in bases(c)}:
        for name, value in vars(kind).items():
            function = None if name.startswith("_") else function_of(value)
            if function is not None:
                found[f"{kind.__name__}.{name}"] = function
    return found


FUNCTIONS = public_functions()


def parameters(function):
    return [n for n in inspect.signature(function).parameters if n not in ("self", "cls")]


def prose(doc):
    """What a short docstring names in backticks, without sections."""
    return set(re.findall(r"`+(\w+)`+", doc.partition("\n\n")[0]))


def lacks(name, function):
    """What a docstring does not say, as text; empty when it says all."""
    doc = inspect.getdoc(function) or ""
    wanted, told, short = parameters(function), sections(doc), prose(doc)
    named = entries(told.get("Parameters", "")) | entries(told.get("Other Parameters", "")) | short
    if not doc or not doc.strip():
        yield "a docstring"
    yield from (f"parameter {p}" for p in wanted if p not in named)
    gives = str(inspect.signature(function).return_annotation)
    shaped = any(part in gives for part in SHAPED)
    if (shaped or ("." not in name and gives != "None")) and not {"Returns", "Yields"} & {*told}:
        yield f"what it returns, {gives}"
    refuses = "Raises" in told or any(word.endswith("Error") for word in short)
    if wanted and not refuses and name not in REFUSES_NOTHING:
        yield "what it raises"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_and_method_says_what_it_takes_gives_and_refuses(name):
    assert [*lacks(name, FUNCTIONS[name])] == []


def test_exceptions_are_still_needed():
    silent = {n for n in REFUSES_NOTHING if "Raises" not in sections(inspect.getdoc(FUNCTIONS[n]))}
    assert silent == set(REFUSES_NOTHING)


def commented_fields(kind):
    """Fields of a class with a ``#:`` comment above them or behind, as Sphinx reads it."""
    above = False
    for line in inspect.getsource(kind).split("\n"):
        field = re.match(r"    (\w+)(:| =)", line)
        if field and (above or "  #: " in line):
            yield field[1]
        above = line.startswith("    #: ")


@pytest.mark.parametrize("kind", public_classes(), ids=lambda k: k.__name__)
def test_every_class_says_what_it_holds(kind):
    docs = [inspect.cleandoc(base.__doc__ or "") for base in bases(kind)]
    told = [sections(doc) for doc in docs]
    texts = [t.get(part, "") for t in told for part in ("Attributes", "Parameters")]
    named = {name for text in texts for name in entries(text)}
    named |= {name for base in bases(kind) for name in commented_fields(base)}
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    own = [base for base in bases(kind) if "__init__" in vars(base)]
    wanted = {f.name for f in fields if not f.name.startswith("_")}
    wanted |= {p for base in own[:1] if not fields for p in parameters(base.__init__)}
    assert docs[0]
    assert sorted(wanted - named) == []


@pytest.mark.parametrize("kind", public_classes(), ids=lambda k: k.__name__)
def test_every_property_has_its_sentence(kind):
    for base in bases(kind):
        for name, value in vars(base).items():
            if isinstance(value, property | cached_property) and not name.startswith("_"):
                assert value.__doc__, f"{kind.__name__}.{name}"


def test_a_docstring_that_lacks_something_is_found():
    def silent(path, size: int = 1) -> "Array":  # noqa: F821
        """Something of `path`."""

    missing = ["parameter size", "what it returns, Array", "what it raises"]
    assert [*lacks("silent", silent)] == missing
