"""Every refusal that carries an option is reached, names that option and says what to do."""

import re

import numpy as np
import pandas as pd
import pytest

import feasid
from benchmarks.refusals import Watch, refusals
from benchmarks.refused import CASES, Many
from feasid.core.errors import FeasidError

f = feasid

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


def doubled(labels):
    return pd.MultiIndex.from_tuples([(label, "x") for label in labels])


WRONG = [
    ("both have t = 0 s .* pass rate= ", lambda s: f.fit(s.log.assign(t=1.0), s.robot)),
    ("2 levels of names: join", lambda s: f.fit(s.log.set_axis(doubled(s.log), axis=1), s.robot)),
    ("after trimming .* and delay=1e.06 s; record", lambda s: s.fit_log(delay=1e6)),
    ("and exclude= of 160 of 160 rows; record", lambda s: s.fit_log(exclude=[(-1, 100)])),
    (r"exclude has \(5, 1\), which ends before", lambda s: s.fit_log(exclude=[(5, 1)])),
    ("decimate=9 has no effect without filtering='signals' .h", lambda s: s.fit_log(decimate=9)),
    ("not .*0.* of shape .3, 3", lambda s: s.fit_log(transmission=np.zeros((3, 3)))),
    ("upper.m cannot hold in any", lambda s: s.fit_log(known={"upper.m": -1}, diagnose=False)),
    ("skipped: q_slide", lambda s: f.fit({"t": [0, 1, 2], "q_slide": [1, 2]}, s.robot)),
    ("not a value of type DataFrame", lambda s: f.fit(s.robot, s.log)),
    ("reduced data hold no samples", lambda s: f.diagnose([s.log, s.reduced], s.full)),
    ("data are of 22 base .* fit of 23", lambda s: s.fit.errors_of(f.reduce(s.log, s.terms))),
    ("base= is missing", lambda s: f.check(s.log)),
    ("not from ''", lambda s: f.load_robot("")),
    ("loaded: the log has no column", lambda s: f.payload(s.log[["t"]], s.log, s.robot)),
    ("unloaded: the log has no column", lambda s: f.payload(s.log, s.log[["t"]], s.robot)),
    ("payload has no option 'cutof'", lambda s: f.payload(s.log, s.log, s.robot, cutof=1)),
    ("did you mean 'kuka'", lambda s: s.loaded.to("kukka")),
    ("window must be .* at most 86400", lambda s: f.replay(s.log, s.full, window=1e6)),
    ("interval must be a number above 0", lambda s: f.replay(s.log, s.full, interval=-1.0)),
    ("harmonics must be .* at most 1000", lambda s: f.excite(s.full, harmonics=10**6)),
    ("horizon must be a number or a sequence", lambda s: f.simulate(s.full, s.log, horizon="x")),
    ("robots must be a mapping from a text", lambda s: f.fit_fleet({1: s.log, 2: s.log}, s.full)),
    ("or robot.with_values", lambda s: f.simulate(s.robot, s.log)),
]
"""What a message says, and the call: what raised NumPy's errors, or blamed something else."""


@pytest.mark.parametrize(("words", "call"), WRONG)
def test_a_wrong_input_is_named(words, call, subjects):
    with pytest.raises(FeasidError, match=words):
        call(subjects)
