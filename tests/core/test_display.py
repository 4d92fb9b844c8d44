"""Displays: quiet when good, loud when not, 20 lines of 80 columns, harmless everywhere."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from evidence_of import evidence
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli.output import print_display
from feasid.core.display import HEIGHT, WIDTH, Display, Measure
from feasid.core.notes import Note
from feasid.identification.assessment.quality import Uses, judge
from feasid.logs.checks.findings import Diagnosis, Finding
from feasid.results.report.summary import _latex_text, display

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e[bold]"

GOOD = """\
feasible fit of 'arm': good; 3 base of 4 parameters, 1 body
   yes        Gravity compensation. a misses 0.4 N m; its friction holds 0.5 N
              m.
   yes        Feed-forward. Expect to miss 3.5 to 15 % of the torque on another
              day.
   not known  Contact. The log in memory does not show which pushes are
              detected.
   yes        Weighing. 1 kg is known to 0.05 kg after 6 s of motion.
   -          Simulation. Not simulated: a short log, none in memory, a loop or
              a floating base.
   -          Masses. 1 of 2 known to 20 % from this log; 4 kg in all.
   physically consistent   yes (certified), smallest margin 0.012
   cross-validation error  5.07 % (description 7.61 %, least squares 5.07 %)
   error on fitted log     4 % (3 a to 5 b)
   1 note on what was assumed, derived and left out: fit.notes
   more: fit.summary(), fit.plot(), fit.base_table, fit.report('report.html')"""

BAD = """\
feasible fit of 'arm': useless; 3 base of 4 parameters, 1 body
   physically consistent   yes (certified), smallest margin 0.012
!! CROSS-VALIDATION ERROR  89.6 % (description 134 %, least squares 89.6 %)
   error on fitted log     4 % (3 a to 5 b)
!! DO NOT USE THIS MODEL.
!! error lag: the torques are late [lag]
!! The model misses 90 % of the torque on held-out motion: check columns, units,
   signs and the robot (feasid.diagnose). [little-explained]
   1 note on what was assumed, derived and left out: fit.notes
   more: fit.summary(), fit.plot(), fit.base_table, fit.report('report.html')"""

DIAGNOSIS = """\
diagnosis of 100 samples, 1 s at 100 Hz
!! ERRORS    1: fix before fitting
   warnings  0
!! error   sign [a]: torque has the wrong sign
   -> sign={'a': -1}
   note    quiet: it hardly moves
   more: diagnosis.explain(), diagnosis.frame(); feasid.fit(log, robot,
   **diagnosis.options)"""

BASE = """\
base parameters of 'robot': 6 of 20 parameters
   parameters      2 known alone, 6 in sums, 12 never
   random motions  confirm the count  (goal confirmed)
   1  L1zz - m1 - m2
   2  l1x + m1 + m2
   3  l1y
   4  L2zz - m2
   5  l2x + m2
   6  l2y
   more: base.listing(), base.table(), base.explain('body.m'), base.K"""


def fitted(error, notes=()):
    """What a display asks of a fit, with numbers by hand."""
    shown = evidence((0.1, 10 * error), notes=notes)
    nan = np.full(2, np.nan)
    uses = Uses(judge(shown), np.nan, nan, nan, 1)
    return SimpleNamespace(
        robot=SimpleNamespace(name="arm", bodies=(0,)),
        beta=np.zeros(3),
        base=SimpleNamespace(unknowns=4),
        reduced=SimpleNamespace(samples=200),
        solution=SimpleNamespace(margins={"a": 0.0123, "b": 0.5}, consistency="full"),
        quality=judge(shown),
        evidence=shown,
        uses=uses.table(),
        relative_error=pd.Series({"a": 0.03, "b": 0.05, "all": 0.04}),
        base_table=pd.DataFrame({"relative_std_percent": [1, 2, 50.0], "std": np.ones(3)}),
        notes=notes,
    )


@pytest.mark.parametrize(
    ("error", "note", "text"),
    [
        (0.05, Note("filtered"), GOOD),
        (0.9, Note("error lag: the torques are late", "lag", level="error"), BAD),
    ],
)
def test_a_fit_is_quiet_when_good_and_loud_when_not(error, note, text):
    assert display(fitted(error, (note,))).text() == text


def test_a_diagnosis():
    sign = Finding("sign", "error", "torque has the wrong sign", "sign={'a': -1}", ("a",),
                   options={"sign": {"a": -1}})  # fmt: skip
    found = Diagnosis((sign, Finding("quiet", "note", "it hardly moves")), 100, 1.0, 100.0)
    assert repr(found) == DIAGNOSIS


def test_base_parameters():
    robot = feasid.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)], gravity=(0, -9.81, 0))
    assert repr(feasid.base_parameters(robot)) == BASE


def test_a_verdict_names_what_clashes():
    body = feasid.Body("rod", None, inertial=-np.ones(10))
    text = repr(feasid.check(feasid.Robot((body,))))
    start = "verdict: infeasible under full consistency\n!! PHYSICALLY CONSISTENT  no, "
    assert text.startswith(start)
    assert "!! whose: rod" in text
    assert "NOT MET" in text


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One result of every kind, of a robot whose names are as bad as names get."""
    path = tmp_path_factory.mktemp("display") / "arm.urdf"
    long = "a_link_with_a_name_that_alone_is_longer_than_any_display_would_like_it_to_be_at_all"
    hostile = HOSTILE.replace("\x1b", "").replace("<", "&lt;")
    path.write_text(ARM.replace('"upper"', f'"{hostile}"').replace('"rod"', f'"{long}"'))
    robot = feasid.load_robot(path)
    log = simulate(robot.with_joint_terms(), arm_parameters(robot.with_joint_terms()), 1, noise=3)
    fit = feasid.fit(log, robot)
    motion = feasid.excite(robot, 4.0, position=1.0, velocity=2.0, acceleration=5.0,
                           starts=1, rounds=0)  # fmt: skip
    return [
        fit, fit.base, feasid.diagnose(log, robot), feasid.check(path),
        feasid.correct(robot), feasid.check(robot), motion,
    ]  # fmt: skip


def test_every_display_fits_and_is_harmless(results):
    for result in results:
        text = repr(result)
        lines = text.splitlines()
        assert len(lines) <= HEIGHT
        assert max(map(len, lines)) <= WIDTH
        assert text.isprintable() or all(c == "\n" or c.isprintable() for c in text)
        assert "more: " in text
        html = result._repr_html_()
        assert "<script" not in html
        assert html.count("<table") == html.count("</table>") == 1


def test_notebooks_mark_what_is_not_met_and_nothing_else():
    assert "NOT MET" in Display("a", [Measure("b", "2", "1", False)]).html()
    assert "NOT MET" not in Display("a", [Measure("b", "1", "1")]).html()


def test_latex_prints_its_special_characters():
    assert _latex_text("a_1 \\ 5 %") == r"a\_1 \textbackslash{} 5 \%"


def test_a_terminal_shows_what_is_wrong_in_red_and_no_characters_of_outsiders(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for environment, codes in (({}, ("\x1b[1m", "\x1b[1;31m")), ({"NO_COLOR": "1"}, ("", ""))):
        monkeypatch.setattr("os.environ", environment)
        print_display(Display("a\x1b[2J", [Measure("b", "1", "1")], ["it is\x1b[2J wrong"]))
        first, measure, wrong = capsys.readouterr().out.splitlines()
        assert measure == "   b  1  (goal 1)"
        assert "\x1b[2J" not in first + wrong
        assert first.startswith(codes[0] + "a")
        assert wrong.startswith(codes[1] + "!! it is")


def test_what_has_no_room_is_counted():
    shown = Display("much", troubles=[f"trouble {k}" for k in range(50)], more="more: there")
    lines = shown.text().splitlines()
    assert len(lines) == HEIGHT
    assert lines[-2:] == ["   ... and 33 more", "   more: there"]
    assert lines.count("   ... and 33 more") + sum("!! trouble" in x for x in lines) == 18
    assert not shown.good
    assert Display("fine", [Measure("a", "1", "1")]).good


def test_what_is_pasted_is_whole():
    words = "--units " + ",".join(f"tau_joint_{k}=-1.0" for k in range(30))
    trouble = f"{'much prose ' * 60}\n-> {words} (better)"
    shown = Display("a", troubles=[trouble], more=f"or {words}")
    assert f"   -> {words} (better)" in shown.text().splitlines()
    short = Display("a", troubles=[f"{'x' * k} (--units tau=-1.0)" for k in range(40, 78)])
    assert "--units\n" not in short.text()


def test_pages_for_notebooks_escape_everything():
    shown = Display(HOSTILE, [Measure(HOSTILE, HOSTILE, HOSTILE, False)], [HOSTILE], [HOSTILE])
    html = shown.html()
    assert "<script" not in html
    assert "\x1b" not in html + shown.text()
    assert "\u202e" not in html + shown.text()
    assert html.count("&lt;script&gt;") == 6


def test_a_bad_joint_in_a_good_whole_is_named_and_the_whole_is_quiet():
    fit = fitted(0.05)
    reasons, errors = (Note("b: 60 % off"),), fit.quality.errors
    fit.quality = SimpleNamespace(level="doubtful", errors=errors, reasons=reasons)
    text = display(fit).text()
    assert "!! b: 60 % off" in text
    assert "   cross-validation error" in text
