"""Every refusal that carries an option is reached, names that option and says what to do."""

import re

import pytest

from benchmarks.refusals import Watch, refusals
from benchmarks.refused import CASES, Many
from benchmarks.refused_inputs import INPUTS
from feasid.core.errors import FeasidError

ADVICE = re.compile(
    r"\b(must|needs?|leave|pass|use|give|lacks|fit again|ask for|name|build|known are|there are"
    r"|one of|installed|applies|taken|is one number|a parameter is|save|has no option)\b"
)
"""Words of messages that say what to do, or what there is to choose from."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    return Many(tmp_path_factory.mktemp("subjects"))


@pytest.fixture(scope="module")
def ends(subjects):
    """How every call ended, and where errors were made."""
    watch, out = Watch(), []
    watch.pytest_sessionstart()
    try:
        for _, call in CASES:
            with pytest.raises(FeasidError) as caught:
                call(subjects)
            out.append(caught.value)
    finally:
        watch.pytest_sessionfinish()
    return out, watch


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{k} {name}" for k, (name, _) in enumerate(CASES)]
)
def test_a_refusal_names_its_option_and_says_what_to_do(number, ends):
    error, option = ends[0][number], CASES[number][0]
    assert error.option == option
    assert re.search(rf"\b{option}\b", str(error)), error
    assert ADVICE.search(str(error)), error


def test_every_refusal_of_an_option_is_reached(ends):
    reached = ends[1].reached
    assert len([*refusals("option")]) > 50  # the search for them works
    assert [(file, first) for file, first, last in refusals("option")
            if not reached[file] & {*range(first, last + 1)}] == []  # fmt: skip


@pytest.mark.parametrize(("words", "call"), INPUTS)
def test_a_wrong_input_is_named(words, call, subjects):
    with pytest.raises(FeasidError, match=words):
        call(subjects)
