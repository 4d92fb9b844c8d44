"""Every joint term of the table through everything that follows from it."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import feasid
from feasid import certificate
from feasid.applications.excitation.drives import DriveColumns, DriveSignals, MotionGradient
from feasid.core.errors import DescriptionError, InputError
from feasid.options.complete import option_table
from feasid.options.tables import FitOptions
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.results.codegen.c import compile_routines
from feasid.results.codegen.routine import BaseParameterModel, python_function
from feasid.robot.dynamics.energy import drive_energy
from feasid.robot.formats.registry import FORMATS
from feasid.robot.formats.terms import sum_drives
from feasid.robot.joint_terms import (
    DRIVE_SYMBOLS,
    FEATURE_SYMBOLS,
    FREE_FEATURES,
    FRICTION,
    JOINT_TERMS,
    NONNEGATIVE,
    RIPPLE,
    SEARCHED,
    SIGNED_FEATURES,
    STRIBECK_SPEED,
    TERMS,
    WIDE_STRIBECK_SPEED,
    JointTerm,
)

REST, TRANSITION, WAVES = 0.3, 0.2, (12.0, 7.0)
SAMPLES = 40

ROUNDING = 1e-13
"""Relative: a factor is a few operations."""

STEP = 1e-6
SLOPE = 1e-8
"""Central differences err by the step's square, and by rounding over the step: relative 1e-9."""

SYMBOLS = [*TERMS]


def drive(symbol, transition=0.0, values=None, ratio=1.0):
    """A drive of joint "1" with this term, and the one that it is bounded by."""
    bound = TERMS[symbol].bounded_by
    symbols = (bound, symbol) if bound else (symbol,)
    return feasid.Drive("1", {"1": ratio}, symbols, values, transition, REST, ripple=WAVES)


def formula(symbol, q, dq, ddq, load, transition=0.0):
    """The factors, written a second time."""
    s = np.tanh(dq / transition) if transition else np.sign(dq)
    return {
        "Ia": ddq,
        "fv": dq,
        "fc": s,
        "fo": np.ones_like(q),
        "k": q - REST,
        "fs": s * np.sqrt(np.abs(dq)),
        "fl": s * np.abs(load),
        "fw": s * np.abs(load),
        "fb": s * np.exp(-((dq / STRIBECK_SPEED) ** 2)),
        "fe": s * np.exp(-((dq / WIDE_STRIBECK_SPEED) ** 2)),
        "fd": np.abs(dq),
        "k2": (q - REST) ** 2,
        "k3": (q - REST) ** 3,
        "gs": np.sin(q),
        "gc": np.cos(q),
        "rs": np.sin(12 * q),
        "rc": np.cos(12 * q),
        "rs2": np.sin(7 * q),
        "rc2": np.cos(7 * q),
    }[symbol]


def states(seed=0):
    q, dq, ddq, load = np.random.default_rng(seed).uniform(-2, 2, (4, SAMPLES))
    return q, dq, ddq, load


def arm(symbol, transition=0.0):
    """Two links, the first joint with the term; every parameter has a value."""
    robot = feasid.Robot.from_dh([(-1.2, 0.3, 0.1, 0), (0.4, 0.2, 0, 0)])
    ten = [2.0, 0.02, -0.01, 2.0, 0.03, 2.0, 0.2, 0.1, -0.1, 3.0]
    bodies = tuple(replace(b, inertial=np.array(ten)) for b in robot.bodies)
    load = np.array([ten, ten]) if TERMS[symbol].needs_load else None
    count = len(drive(symbol).symbols)
    own = drive(symbol, transition, np.linspace(0.7, 0.5, count))
    return feasid.Robot(bodies, drives=(own,), load_model=load)


DOUBLE, SINGLE = 1e-9, 2e-6
"""Differences of torques by rounding: attributes of USD are numbers of 32 bits."""


def named(robot):
    """With names that every format has: those of prims in USD begin with a letter."""
    first, second = robot.bodies
    bodies = replace(first, name="a", joint="a"), replace(second, name="b", joint="b", parent="a")
    drives = tuple(replace(d, name="a", coupling={"a": d.coupling["1"]}) for d in robot.drives)
    return replace(robot, bodies=bodies, drives=drives)


def column(robot, symbol):
    return robot.drive_columns(0)[symbol]


@pytest.mark.parametrize("transition", [0.0, TRANSITION])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_factor(symbol, transition):
    q, dq, ddq, load = states()
    found = drive(symbol, transition).factor(symbol, q, dq, ddq, load=load)
    wanted = formula(symbol, q, dq, ddq, load, transition)
    np.testing.assert_allclose(found, wanted, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_regressor_and_inverse_dynamics(symbol):
    robot = arm(symbol)
    q, dq, ddq = np.random.default_rng(1).uniform(-2, 2, (3, SAMPLES, 2))
    own = q[:, 0], dq[:, 0], ddq[:, 0]
    rigid = robot.without_joint_terms()
    rates = (0 * dq, 0 * ddq) if TERMS[symbol].at_rest else (dq, ddq)
    wanted = formula(symbol, *own, feasid.inverse_dynamics(rigid, q, *rates)[:, 0])
    Y = feasid.regressor(robot, q, dq, ddq)[:, :, column(robot, symbol)]
    np.testing.assert_allclose(Y[:, 0], wanted, rtol=1e-10, atol=ROUNDING)
    assert not Y[:, 1].any()
    values = np.zeros(robot.size)
    values[column(robot, symbol)] = 2.0
    torque = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=values)
    np.testing.assert_allclose(torque[:, 0], 2 * wanted, rtol=1e-10, atol=ROUNDING)


@pytest.mark.parametrize("transition", [0.0, TRANSITION])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_the_derivative_of_the_energy_is_the_factor(symbol, transition):
    own, term = drive(symbol, transition), TERMS[symbol]
    x = states()[1]
    if term.needs_load:
        with pytest.raises(InputError, match="load"):
            drive_energy(own, symbol, x, x)
        return

    def energy(at):
        return drive_energy(own, symbol, at, at)

    slope = (energy(x + STEP) - energy(x - STEP)) / (2 * STEP)
    np.testing.assert_allclose(slope, own.factor(symbol, x, x, x), rtol=SLOPE, atol=SLOPE)
    assert energy(np.zeros(1)) == 0.0


def test_quadrature_resolves_the_sign_of_a_fit():
    """The integral of tanh(v / w) is ``w log cosh(v / w)``."""
    width, v = 0.005, np.array([0.01, 0.1, 1.0, 5.0])
    found = drive_energy(drive("fc", width), "fc", v, v)
    exact = v + width * (np.log1p(np.exp(-2 * v / width)) - np.log(2.0))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.mark.parametrize("symbol", [s for s in SYMBOLS if TERMS[s].kind == "friction"])
def test_friction_dissipates_where_its_sign_says_so(symbol):
    q, dq, ddq, load = states()
    power = dq * drive(symbol).factor(symbol, q, dq, ddq, load=load)
    if symbol in NONNEGATIVE:
        assert (power >= 0).all()
    elif TERMS[symbol].bounded_by:
        larger = TERMS[symbol].bounded_by
        most = dq * drive(larger).factor(larger, q, dq, ddq, load=load)
        assert (np.abs(power) <= most).all()


@pytest.mark.parametrize("ratio", [-1.0, 1.0, 2.5, -0.4])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_scaling_by_a_ratio(symbol, ratio):
    """The load is of the joint and not of the drive."""
    term, (q, dq, ddq, load) = TERMS[symbol], states()
    own = replace(drive(symbol), rest=0.0)
    weight = term.scaling(ratio)
    if weight is None:
        assert term.degree is None
        assert abs(ratio) != 1.0
        return
    left = ratio * own.factor(symbol, ratio * q, ratio * dq, ratio * ddq, load=load)
    right = weight * own.factor(symbol, q, dq, ddq, load=load)
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, TRANSITION])
@pytest.mark.parametrize("symbol", [s for s in SYMBOLS if not TERMS[s].needs_load])
def test_gradients_of_designed_motions(symbol, smoothing):
    """A product with the regressor, differentiated by reverse mode and by differences."""
    robot = arm(symbol)
    columns = DriveColumns.from_robot(robot, [column(robot, symbol)], np.full(1, smoothing))
    motion = np.random.default_rng(2).uniform(-2, 2, (3, robot.dof, SAMPLES))
    bar = np.random.default_rng(3).standard_normal((SAMPLES, robot.dof, 1))

    def value(motion):
        Y, torques = np.zeros((SAMPLES, robot.dof, 1)), np.zeros((robot.dof, SAMPLES))
        DriveSignals(columns, *motion).add_to_equations(Y, torques)
        return (Y * bar).sum()

    gradient = MotionGradient.zeros(robot.dof, SAMPLES)
    DriveSignals(columns, *motion).pull_back(bar, None, gradient)
    for part, found in enumerate(gradient):
        for sample in range(0, SAMPLES, 7):
            step = np.zeros_like(motion)
            step[part, 0, sample] = STEP
            slope = (value(motion + step) - value(motion - step)) / (2 * STEP)
            assert slope == pytest.approx(found[0, sample], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("transition", [0.0, TRANSITION])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_generated_code(symbol, transition):
    robot = arm(symbol, transition)
    function = python_function(BaseParameterModel.from_robot(robot).routine("inverse_dynamics"))
    q, dq, ddq = np.random.default_rng(4).uniform(-2, 2, (3, SAMPLES, 2))
    found = [function(*x) for x in zip(q.tolist(), dq.tolist(), ddq.tolist(), strict=True)]
    wanted = feasid.inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


def test_springs_beyond_their_range_are_their_tangent_and_then_constant(tmp_path):
    """Known from -.5 to .7 rad: linear for half of this width more, in code and files as well."""
    spring = feasid.Drive("1", {"1": 1.0}, ("k", "k2", "k3"), [2.0, 3.0, 4.0], 0, REST, (-0.5, 0.7))
    robot = replace(arm("k3"), drives=(spring,))
    q = np.linspace(-4, 4, SAMPLES)
    edge, near = np.clip(q, -0.5, 0.7), np.clip(q, -1.1, 1.3)
    x, beyond = edge - REST, near - edge
    for k, symbol in enumerate(spring.symbols, start=1):
        tangent = x**k + k * x ** (k - 1) * beyond
        np.testing.assert_allclose(spring.factor(symbol, q, q, q), tangent, atol=1e-12)
    motion = np.zeros((3, SAMPLES, robot.dof))
    motion[0, :, 0] = q
    torque = feasid.inverse_dynamics(robot, *motion)
    code = python_function(BaseParameterModel.from_robot(robot).routine("inverse_dynamics"))
    found = [code(*x) for x in zip(*motion.tolist(), strict=True)]
    np.testing.assert_allclose(found, torque, atol=1e-11)
    feasid.write(named(robot), tmp_path / "arm.xml")
    again = feasid.load_robot(tmp_path / "arm.xml")
    np.testing.assert_allclose(feasid.inverse_dynamics(again, *motion), torque, atol=DOUBLE)
    with pytest.raises(DescriptionError, match="spring_range must increase"):
        replace(spring, spring_range=(1.0, -1.0))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_code():
    """All terms at once, as one library."""
    robot = feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0), (-1.2, 0.3, 0, 0)])
    robot = robot.with_values(np.random.default_rng(1).uniform(0.5, 1.5, robot.size))
    robot = robot.with_joint_terms([*FRICTION], drive_inertia=True).with_transition(TRANSITION)
    symbols, values = (*robot.drives[0].symbols, *RIPPLE), None
    drives = (replace(d, symbols=symbols, values=values, ripple=WAVES) for d in robot.drives)
    robot = replace(robot, drives=tuple(drives))
    robot = robot.with_values(np.where(np.isnan(robot.values), 0.7, robot.values))
    assert {*robot.drives[0].symbols} == {*TERMS}
    function = compile_routines(BaseParameterModel.from_robot(robot), ("inverse_dynamics",))[
        "inverse_dynamics"
    ]
    for q, dq, ddq in np.random.default_rng(5).uniform(-2, 2, (SAMPLES, 3, 2)):
        wanted = feasid.inverse_dynamics(robot, q, dq, ddq)[0]
        np.testing.assert_allclose(function(q, dq, ddq), wanted, rtol=1e-11, atol=1e-11)


# -- signs -----------------------------------------------------------------------------------


def test_the_checker_has_the_same_signs():
    """It keeps its own list; what the two disagree on would be proved wrongly."""
    assert {*certificate.SIGNED} == NONNEGATIVE
    assert {*certificate.FREE} == {*DRIVE_SYMBOLS} - NONNEGATIVE
    assert {*SIGNED_FEATURES} <= NONNEGATIVE
    assert not {*FREE_FEATURES} & NONNEGATIVE


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_feasible_set(symbol):
    robot = arm(symbol)
    feasible = feasible_set(robot)
    inside = robot.values
    assert feasible.violations(inside) == ()
    negative = inside.copy()
    negative[column(robot, symbol)] = -100.0
    broken = feasible.violations(negative)
    if symbol in NONNEGATIVE:
        assert broken == (f"{symbol} of 1",)
    else:
        assert len(broken) == bool(TERMS[symbol].bounded_by)
    assert feasid.check(robot.with_values(negative)).feasible == (not broken)


# -- words, options, files -------------------------------------------------------------------


@pytest.mark.parametrize("word", [*FRICTION])
def test_words_of_friction(word):
    robot = arm("fv")
    words = {"viscous", word} if any(TERMS[s].bounded_by for s in FRICTION[word]) else {word}
    symbols = robot.with_joint_terms([*words], joints=["1"]).drives[0].symbols
    assert {*FRICTION[word]} <= {*symbols}
    options = option_table(FitOptions)
    assert repr(word) in options["friction"].kind.text
    searched = word not in ("viscous", "coulomb", "offset")
    assert (repr(word) in options["candidates"].kind.text) == searched


def test_every_term_but_drive_inertia_and_ripple_has_a_word():
    assert [t.symbol for t in JOINT_TERMS if not t.word] == ["Ia", *RIPPLE]
    for waves in ((), (12.0,), (7.0, 7.0), (7.0, 0.5)):
        with pytest.raises(DescriptionError, match=r"drive '1': ripple must give the periods"):
            replace(drive("rs2"), ripple=waves)


PAGE = Path(__file__).parents[2] / "docs" / "friction.md"


@pytest.mark.parametrize("word", [*SEARCHED])
def test_the_page_on_fitting_has_every_word_with_its_symbols(word):
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    (row,) = (r for r in rows if f"`{word}`" in r.split("|")[1])
    assert all(re.search(rf"\b{symbol}\b", row) for symbol in SEARCHED[word])


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_files_keep_every_term(symbol, form, tmp_path):
    """In the format's own place, or in the sidecar."""
    robot = named(arm(symbol))
    path = tmp_path / f"arm{form.suffixes[0]}"
    feasid.write(robot, path)
    again = feasid.load_robot(path)
    q, dq, ddq = np.random.default_rng(6).uniform(-2, 2, (3, SAMPLES, 2))
    wanted = feasid.inverse_dynamics(robot, q, dq, ddq)
    size = SINGLE if form.name == "usd" else DOUBLE
    np.testing.assert_allclose(
        feasid.inverse_dynamics(again, q, dq, ddq), wanted, rtol=size, atol=size
    )
    bare = feasid.load_robot(path, sidecar=False)
    given = {s for d in bare.drives for s in d.symbols}
    assert (symbol in given) == (symbol in form.holds)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_drives_of_one_joint_are_added_as_the_joint_sees_them(symbol):
    """A drive on a gear of ratio -1, slack at zero, beside one on the joint."""
    count = len(drive(symbol).symbols)
    both = [
        replace(drive(symbol, values=np.full(count, 2.0), ratio=ratio), rest=0.0)
        for ratio in (1.0, -1.0)
    ]
    ((key, total),) = sum_drives(both).items()
    assert key == (("1", 1.0),)
    assert total[symbol] == pytest.approx(2.0 + 2.0 * TERMS[symbol].scaling(-1.0))


# -- mistakes --------------------------------------------------------------------------------


def test_the_table_of_joint_terms_does_not_contradict_itself():
    symbols = [term.symbol for term in JOINT_TERMS]
    assert len({*symbols, *FEATURE_SYMBOLS}) == len(symbols) + len(FEATURE_SYMBOLS)
    assert {term.bounded_by for term in JOINT_TERMS} <= {*symbols, "", None}
    assert all((t.kind == "inertia") == (t.varies_with == "ddq") for t in JOINT_TERMS)
    with pytest.raises(TypeError, match="factor"):
        JointTerm("xx", "", "", "", kind="friction", varies_with="dq")
