"""Every option of the table: a good, an odd and a bad value, in Python and at the prompt."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import pytest
from logs import arm_and_log

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.core.kinds import count
from feasid.options import tables
from feasid.options.complete import (
    check_options,
    complete_options,
    document_options,
    option_table,
    select_options,
)
from feasid.options.option import Option
from feasid.options.spelling import argument_name
from feasid.options.tables import (
    BoundOptions,
    CheckOptions,
    CommandOptions,
    CorrectOptions,
    DiagnoseOptions,
    FitOptions,
    ReduceOptions,
    SetOptions,
)
from feasid.parameters.feasibility.check import check as check_parameters

FIT = option_table(FitOptions)

BESIDE = {  # what an option needs beside it to have an effect
    name: option.needs[0] for name, option in FIT.items() if option.needs is not None
}

COMMANDED = {"servo", *option_table(CommandOptions)}
JOINTS = {"elastic", "passive"}  # the arm's log has one encoder and a torque of each joint

BAD = {  # a value of the wrong kind or out of range; anything is a mapping's or a value's business
    "number": ["", "x", "nan", "inf", "-inf"], "count": ["0", "-3", "1.5", "x"],
    "flag": ["maybe", "2", ""], "choice": ["", "nonsense"], "words": ["nonsense", "[1]"],
    "mapping": ["nonsense", "=", "[1, 2]"], "value": [], "text": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    return folder, *arm_and_log(folder, 1200, 0.01)


def good(name, robot):
    """Options in which `name` has its example, with what it needs."""
    example = FIT[name].example
    if name == "transmission":
        example = str(np.eye(robot.dof).tolist())
    words = {name: example}
    if name == "reference":
        # Possible parameters: unit masses of unit size, without friction.
        words[name] = str([1, 0, 0, 1, 0, 1, 0, 0, 0, 1] * len(robot.bodies))
    if name in BESIDE:
        other = FIT[BESIDE[name]]
        words[BESIDE[name]] = next(str(v) for v in FIT[name].needs[1])
        assert other.syntax in ("choice", "value")
    return words


def quick(name):
    """What makes a fit quick, without a say in `name`."""
    out = {"diagnose": "no", "calibration": "none", "candidates": "none", "prior": "none"}
    needs, values = FIT[name].needs or (None, ())
    if name in {"friction", "cutoff", "filtering"} or "signals" in values:
        del out["candidates"]  # has no effect beside some of their values
    if needs == "prior":
        del out["prior"]
    return {k: v for k, v in out.items() if k != name}


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("name", FIT)
def test_a_good_value_is_taken_in_both_places(arm, name, capsys, monkeypatch):
    folder, robot, log = arm
    if not FIT[name].example:
        pytest.skip("no example on a command line")
    if name in COMMANDED | JOINTS:
        pytest.skip("its tests have logs of their own")
    words = good(name, robot)
    values = {k: FIT[k].parse(k, v) for k, v in words.items()}
    values |= {k: FIT[k].parse(k, v) for k, v in quick(name).items()}
    fit = feasid.fit(log, robot, **values)
    monkeypatch.chdir(folder)
    typed = [w for k, v in (words | quick(name)).items() for w in (argument_name(k), v)]
    assert main(["fit", "log.csv", "--robot", "arm.urdf", "--verbose", *typed]) == 0
    printed = capsys.readouterr().out
    assert f"{100 * fit.relative_error['all']:.2f}%" in printed


@pytest.mark.parametrize("name", FIT)
def test_a_bad_value_is_refused_on_the_command_line(arm, name, capsys, monkeypatch):
    monkeypatch.chdir(arm[0])
    option = FIT[name]
    bad = list(BAD[option.syntax])
    bad += ["-1e-9"] if " of at least " in option.kind.text else []
    for text in bad:
        for typed in (f"{argument_name(name)}={text}", f"--option={name}={text or '?'}"):
            if typed.endswith("=?") and option.syntax == "mapping":
                continue
            assert main(["fit", "log.csv", "--robot", "arm.urdf", typed]) == 2, typed
            printed = capsys.readouterr().err
            assert argument_name(name) in printed or f"--option {name}" in printed
            if option.syntax in ("mapping", "words") and " must be " in printed:
                assert option.example in printed
            assert "Traceback" not in printed


def test_no_words_are_not_the_default():
    assert FIT["friction"].parse("--friction", "none") == ()
    assert FIT["friction"].parse("--friction", "auto") is None


ODD = {
    "number": ["1e-300", "1e300", " 3 ", "-0.0", "true", "None", "0x10", "1_0", "٣"],
    "count": ["1e3", "999999999999", "True", "None"],
    "flag": ["TRUE", "No", "on", "0", "1"],
    "choice": ["Full", "none", "huber,tukey"],
    "words": ["none", "[]", "viscous,viscous", ",", "offset,"],
    "mapping": ["{}", "a=", "nowhere=1", "t=1", '{"q": {"q": {}}}', "none"],
    "text": ["none", "-1", "[]"],
    "value": ["none", "-1", "[]", "[[]]", "{}", '"wls"', "[1, [2]]", "1e400", "[" * 5000],
}


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("name", FIT)
def test_an_odd_value_is_used_or_refused_never_a_traceback(arm, name, capsys, monkeypatch):
    monkeypatch.chdir(arm[0])
    for text in ODD[FIT[name].syntax]:
        typed = [f"{argument_name(k)}={v}" for k, v in ({name: text} | quick(name)).items()]
        if name in BESIDE:
            typed.append(f"{argument_name(BESIDE[name])}={FIT[name].needs[1][0]}")
        status = main(["fit", "log.csv", "--robot", "arm.urdf", *typed])
        printed = capsys.readouterr()
        assert status in (0, 2, 3, 5), typed
        assert "Traceback" not in printed.err
        assert status == 0 or "error" in printed.err


@pytest.mark.parametrize("name", BESIDE)
def test_an_option_without_effect_is_an_error_that_says_so(arm, name):
    _, robot, log = arm
    value = FIT[name].parse(name, FIT[name].example)
    values = (*FIT[BESIDE[name]].words, "entropic")
    wrong = next(c for c in values if c not in FIT[name].needs[1])
    with pytest.raises(InputError, match=rf"{name}=.* has no effect without {BESIDE[name]}="):
        feasid.fit(log, robot, **{name: value, BESIDE[name]: wrong})


@pytest.mark.parametrize(
    ("function", "options", "reads_log"),
    [
        (feasid.fit, FitOptions, True),
        (feasid.reduce, ReduceOptions, True),
        (feasid.check, CheckOptions, False),
        (feasid.correct, CorrectOptions, False),
    ],
)
def test_misspelt_options_and_values_of_another_kind_are_named(arm, function, options, reads_log):
    _, robot, log = arm
    sources = (log, robot) if reads_log else (robot,)
    for name, option in option_table(options).items():
        with pytest.raises(InputError, match=f"did you mean '{name}'"):
            function(*sources, **{f"{name}x": 1})
        if option.syntax != "value":
            with pytest.raises(InputError, match=name):
                function(*sources, **{name: object()})


def test_signatures_and_docstrings_come_from_the_table():
    for function, options in (
        (feasid.fit, FitOptions),
        (feasid.reduce, ReduceOptions),
        (feasid.diagnose, DiagnoseOptions),
        (feasid.correct, CorrectOptions),
        (feasid.feasible_set, BoundOptions),
        (check_parameters, CheckOptions),
    ):
        parameters = inspect.signature(function).parameters
        for name, option in option_table(options).items():
            assert parameters[name].default == option.default
            assert f"{name} : " in inspect.getdoc(function)


def test_defaults_are_in_range_and_examples_are_good():
    for options in (FitOptions, ReduceOptions, SetOptions, CheckOptions, CorrectOptions):
        for name, option in option_table(options).items():
            option.check(name, option.default)
            assert option.doc
            if option.example and name != "transmission":
                option.parse(name, option.example)


RANGES = {
    "rate": "a number of at least 0.001 and at most 1e+07 [Hz] or None",
    "cutoff": "a number of at least 0.001 [Hz] or False or None",
    "trim": "a number of at least 0 [s] or None",
    "decimate": "a whole number of at least 1 or None", "delay": "a number [s]; default 0.0",
    "rest": "a number of at least 0 [rad/s or m/s] or None",
    "derivative_cutoff": "a number of at least 0.001 [Hz] or None",
    "drive_inertia": "True or False or None", "filter_torque": "True or False; default True",
    "sort": "True or False; default False", "plausible": "True or False; default True",
    "diagnose": "True or False; default True",
    "block": "a number above 0 [s]; default 0.5",
    "prior_weight": "a number of at least 1e-06 and at most 1e+06 or 'evidence' or None",
    "slack": "a number of at least 0 and at most 100; default 0.0",
    "margin": "a number of at least 0; default 0.0",
    "level": "a number above 0 and at most 1; default 0.999",
}  # fmt: skip
"""Ranges and defaults of numbers, counts and flags, as a reader of the documentation sees them."""

TABLES = [t for n, t in vars(tables).items() if n.endswith("Options")]


def test_ranges_and_defaults_are_those_that_are_documented():
    own = [t for t in TABLES if t is not CorrectOptions]  # whose margin may be None
    found = {}
    for name, option in (x for table in own for x in option_table(table).items()):
        if option.syntax in ("number", "count", "flag"):
            shown = f"{option.describe_domain()}; default {option.default!r}"
            found[name] = shown.removesuffix("; default None")
    assert found == RANGES
    level = option_table(tables.RangeOptions)["level"]
    for wrong in (0.0, 1.0):
        with pytest.raises(InputError, match="level must be a number above 0"):
            level.check("level", wrong)
    assert level.check("level", 1 - 1e-9) == 1 - 1e-9


@pytest.mark.parametrize("table", TABLES)
def test_no_option_is_required(table):
    """A caller's own dictionary may hold any of them."""
    assert table.__required_keys__ == frozenset()


AB = Literal["ab", "cd"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Sequence[str], "none", ()), (Sequence[str] | None, "None", ()),
        (Sequence[str] | None, "auto", None), (Sequence[str] | None, "default", None),
        (Sequence[str], "auto", ("auto",)), (Sequence[str], "a,,b", ("a", "b")),
        (Sequence[str], ' ["a", "b,c"]', ("a", "b,c")), (Sequence[AB], "cd,ab", ("cd", "ab")),
        (float, " 2.5 ", 2.5), (float, ".5", 0.5), (float | None, " NONE ", None),
        (float | Literal[False], "Off", False), (float | Literal[False], "0", 0.0),
        (float | Literal["usual"], "Usual", "usual"), (bool | None, "no", False),
        (bool | Literal[False], "1", True), (bool, " On ", True), (AB, "cd", "cd"),
        (bool, "false", False), (bool, "No", False), (bool, "0", False), (bool, "off", False),
        (Mapping[str, Any], 'a=1,b=[1, 2],c={"d": 3}', {"a": 1, "b": [1, 2], "c": {"d": 3}}),
        (Mapping[str, str], "a=x=y", {"a": "x=y"}),
        (Mapping[str, str] | None, ' {"a": "b"}', {"a": "b"}),
        (Any, "none", "none"), (Any, "[1, null]", [1, None]), (Any, "word", "word"),
    ],
)  # fmt: skip
def test_words_of_the_prompt_become_values(annotation, text, value):
    found = Option("", annotation=annotation).parse("x", text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "wrong", "message"),
    [
        (Sequence[str], "a", "x must be a sequence, of each item a text, not 'a'"),
        (Sequence[str], {1, 2}, "x must be a sequence, of each item a text, not {1, 2}"),
        (Sequence[str], ["a", 1], "x must be a sequence, of each item a text, not ['a', 1]"),
        (Sequence[AB], ["ab", "cde"],
         "x must be a sequence, of each item 'ab' or 'cd', not 'cde' (did you mean 'cd'?)"),
        (AB, "abc", "x must be 'ab' or 'cd', not 'abc' (did you mean 'ab'?)"),
        (AB, 3, "x must be 'ab' or 'cd', not 3"),
        (Mapping[str, float] | None, [1],
         "x must be a mapping from a text to a number or None, not [1]"),
        (Mapping[str, float], {"a": 1, "b": "c"},
         "x must be a mapping from a text to a number, not 'c' for 'b'"),
        (tables.Points | None, [[1, 2]],
         "x must be points of three numbers or None, not of shape (1, 2)"),
        (Annotated[int, count(1, 3)] | None, 4,
         "x must be a whole number of at least 1 and at most 3 [m] or None, not 4"),
        (tables.Positive, 0, "x must be a number above 0 [m], not 0"),
        (bool, 1, "x must be True or False, not 1"),
    ],
)  # fmt: skip
def test_refusals_word_for_word(annotation, wrong, message):
    with pytest.raises(InputError) as error:
        Option("", unit="m", annotation=annotation).check("x", wrong)
    assert str(error.value) == message
    assert error.value.data["option"] == "x"


class Toy(TypedDict, total=False):
    """Options of nothing."""

    kind: Annotated[Literal["a", "b"], Option("", "a")]
    size: Annotated[float, Option("", 0.0, needs=("kind", ("b",)))]
    own: Annotated[object, Option("", None, needs=("kind", (..., "never")))]
    text: Annotated[object, Option("", None, needs=("kind", ("b", "c")))]


def test_what_has_no_effect_is_refused_with_what_it_needs():
    assert check_options(Toy, {"size": 0.0}, "toy") == {"size": 0.0}
    assert check_options(Toy, {"size": 1, "kind": "b"}, "toy") == {"size": 1.0, "kind": "b"}
    assert check_options(Toy, {"text": None, "own": 1}, "toy") == {"text": None, "own": 1}
    say = "{} has no effect without {} (here kind is 'a'): give that too, or leave {} out"
    text = "x" * 50  # with the name and quotes 57 characters
    for given, words in (
        ({"size": 1}, ("size=1.0", "kind='b'", "size")),
        ({"text": text + "xxx"}, (f"text='{text}xxx'", "kind='b' or kind='c'", "text")),
        ({"text": text + "xxxx"}, ("text", "kind='b' or kind='c'", "text")),
    ):
        with pytest.raises(InputError) as error:
            check_options(Toy, given, "toy")
        assert str(error.value) == say.format(*words)
    with pytest.raises(InputError, match=r"'lock': use load_robot\(path, lock=...\)"):
        check_options(Toy, {"lock": {}}, "toy")
    assert select_options(Toy, {"size": 1, "other": 2}) == {"size": 1}


def test_entries_of_options_take_the_place_of_their_line():
    def function(a, kind="b", **options):
        """One line.

        **options
            Of the toy,
            two lines.

        Returns
        -------
        None
        """

    document_options(Toy)(function)
    assert function.__doc__.split("\n")[:4] == [
        "One line.", "", "kind : 'a' or 'b'; default 'a'", "    .",
    ]  # fmt: skip
    assert function.__doc__.endswith("    .\nReturns\n-------\nNone")
    assert "two lines" not in function.__doc__
    said = inspect.signature(function).parameters
    assert list(said) == ["a", "kind", "size", "own", "text"]
    assert said["size"].kind is inspect.Parameter.KEYWORD_ONLY

    def silent():
        """One line."""

    assert document_options(Toy)(silent).__doc__ == "One line."


def test_numbers_of_numpy_are_numbers():
    option = Option("", annotation=tables.NonNegative)
    assert option.check("x", np.float32(2)) == 2.0
    assert Option("", annotation=tables.Natural).check("n", np.int64(3)) == 3
    assert Option("", annotation=bool).check("f", np.bool_(True)) is True
    for bad in (True, np.bool_(True), "1", np.array([1.0]), 1j):
        with pytest.raises(InputError, match="x must be a number"):
            option.check("x", bad)


def test_completed_adds_defaults_only():
    chosen = complete_options(FitOptions, {"slack": 0.0}, "fit")
    assert chosen.pop("slack") == 0.0
    assert chosen == {n: o.default for n, o in FIT.items() if n != "slack"}
    assert check_options(FitOptions, {"slack": 0}, "fit") == {"slack": 0.0}


@pytest.mark.slow  # half a minute of type checking
def test_a_type_checker_knows_the_options(tmp_path):
    api = pytest.importorskip("mypy.api")
    wrong = [
        'feasid.fit("log.csv", slak=0.1)', 'feasid.fit("log.csv", slack="much")', "feasid.fitt",
    ]  # fmt: skip
    right = ['feasid.fit("log.csv", slack=0.1)', 'feasid.reduce("log.csv", cutoff=False)']
    (tmp_path / "use.py").write_text("\n".join(["import feasid", *right, *wrong]) + "\n")
    said, _, _ = api.run([str(tmp_path / "use.py"), "--cache-dir", str(tmp_path)])
    lines = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    assert lines == {4, 5, 6}
