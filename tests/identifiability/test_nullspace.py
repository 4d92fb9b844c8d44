"""The parameter nullspace against exact arithmetic: published robots, hard and random ones."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from robots import wam

import feasid
from benchmarks.mechanisms import (
    HARD,
    Joint,
    Mechanism,
    Rotor,
    exact_count,
    fractions,
    mechanism_of,
    random_mechanism,
    reframed,
    tilted,
)
from feasid.core.errors import RankError, UnsupportedJointError
from feasid.parameters.identifiability.base import ALONE, COMBINED, NEVER, base_parameters
from feasid.parameters.identifiability.frames import Frames
from feasid.parameters.identifiability.invariant_subspaces import momentum_map, parameter_rate
from feasid.parameters.identifiability.views import span_dimensions, symbol_rows

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "rpna_reference.json").read_text())

ROW_SPACE = 1e-9  # published rationals against doubles, entries of order one
CONSISTENCY = 1e-12  # K times nullspace, relative to the largest factors

SYMBOL = {"m": "m", "mcx": "lx", "mcy": "ly", "mcz": "lz", "It": "Lxx"}
STATUS = {"identifiable": ALONE, "combination": COMBINED, "unidentifiable": NEVER}


def consistency(base):
    """Largest entry of K times the nullspace, relative, in the robot's own units."""
    units = base.coefficients.parameter_units
    k = base.K * units / units[base.independent][:, None]
    r = base.nullspace / units[:, None]
    r = r / np.abs(r).max(axis=0)
    return float((np.abs(k @ r) / np.abs(k).max(axis=1)[:, None]).max(initial=0.0))


# -- the robots of the paper -----------------------------------------------------------------


def paper_robot(case):
    model = REFERENCE["models"][case["model"]]
    bodies = []
    floating = case["base"] == "floating_with_base"
    if floating:
        bodies.append(feasid.Body("0", None, motion=np.eye(6)))
    for entry in model["bodies"]:
        parent = str(entry["parent"]) if entry["parent"] or floating else None
        kind = [0, 0, 1, 0, 0, 0] if entry["joint_type"] == "revolute" else [0, 0, 0, 0, 0, 1]
        rotor, pose = None, (entry["R_parent_from_joint"], entry["p_in_parent"])
        if case["motors"]:
            r = entry["rotor"]
            rotor = feasid.Rotor(r["gear_ratio"], r["R_parent_from_rotor"], r["p_in_parent"])
        bodies.append(
            feasid.Body(str(entry["body"]), parent, *pose, np.array(kind, float), rotor=rotor)
        )
    gravity = model["gravity_in_base_default"] if case.get("gravity", True) else (0, 0, 0)
    return feasid.Robot(bodies, gravity)


def column(robot, label):
    rotor = label.startswith("rotor_")
    head = label.removeprefix("rotor_").rstrip("0123456789")
    body = label.removeprefix("rotor_")[len(head) :]
    symbol = SYMBOL.get(head, head.replace("I", "L"))
    return robot.parameter_names.index((body, ("rotor_" if rotor else "") + symbol))


PAPER = [c for c in REFERENCE["cases"] if c["base"] != "floating"]


def label(case):
    return "-".join(str(case[k]) for k in ("model", "base", "motors", "gravity") if k in case)


@pytest.mark.parametrize("case", PAPER, ids=label)
def test_row_space_status_and_dimensions_of_the_papers_robots(case):
    robot = paper_robot(case)
    base = base_parameters(robot, order="paper")
    at = [column(robot, name) for name in case["param_names"]]
    assert base.size == case["n_base"]
    assert [at[case["param_names"].index(p)] for p in case["minimal_set"]] == sorted(
        base.independent, key=at.index
    )
    for row in case["rref"]:
        expected = np.zeros(robot.size)
        for name, value in row["coeffs"].items():
            expected[column(robot, name)] = float(Fraction(value))
        ours = base.K[base.independent.tolist().index(column(robot, row["pivot"]))]
        np.testing.assert_allclose(ours, expected, atol=ROW_SPACE, rtol=ROW_SPACE)
    for name, status in case["status"].items():
        assert base.status[column(robot, name)] == STATUS[status], name
    found = span_dimensions(base)
    assert list(found.motion) == case["dimV"]
    assert list(found.parameters) == case["dimK"]
    assert list(found.transfers) == (case["dimT_reduced"] or case["dimT"])
    assert consistency(base) < CONSISTENCY


@pytest.mark.parametrize("case", REFERENCE["static_cases"], ids=label)
def test_static_identifiability_of_the_papers_robots(case):
    robot = paper_robot(case)
    base = base_parameters(robot, static=True, order="paper")
    leading = {column(robot, name) for name in case["minimal_set"]}
    assert set(base.independent.tolist()) == leading
    found = span_dimensions(base)
    assert list(found.motion) == case["dimG"]
    assert list(found.parameters) == case["dimK"]
    assert list(found.transfers) == case["dimT"]


def test_table_2_prints_as_published():
    case = next(c for c in PAPER if label(c) == "PUMA560-fixed-True-True")
    base = base_parameters(paper_robot(case), order="paper")
    rows = {symbol: "".join(cells) for symbol, cells in symbol_rows(base).items()}
    assert rows["lx"] == "✕●●★★★"
    assert rows["ly"] == "✕★●●●★"
    assert rows["Lxy"] == "✕★●★★★"
    assert rows["rotor_Lzz"] == "○○★★★★"
    lines = [line.split() for line in base.table().splitlines()]
    assert ["dim", "V", "1", "(2)", "3", "(5)", "6", "6", "6", "6"] in lines
    assert ["dim", "K", "1", "6", "(8)", "10", "10", "10", "10"] in lines


# -- mechanisms that are hard in floating point ----------------------------------------------


@pytest.mark.parametrize("case", HARD, ids=[c["name"] for c in HARD])
def test_hard_mechanisms_are_exact(case):
    base = base_parameters(mechanism_of(case).robot())
    assert base.size == case["n_base"]
    transfers = [*case["dimT"]]
    for i, joint in enumerate(case["joints"]):
        if "rotor" in joint:
            transfers[i] -= 6  # asymmetric directions of a rotor, which we do not have
    assert list(span_dimensions(base).transfers) == transfers
    assert consistency(base) < CONSISTENCY


NEARLY = {  # joints that are closer to degenerate than floating point can tell
    "SCARA g tilt 1e-12": "1",
    "4R parallel, one axis tilted 2e-8 rad": "3",
}


@pytest.mark.parametrize("name", NEARLY)
def test_nearly_degenerate_joints_are_named(name):
    base = base_parameters(mechanism_of(next(c for c in HARD if c["name"] == name)).robot())
    assert any(f"joint {NEARLY[name]!r}: nearly degenerate" in w for w in base.warnings)


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12])
def test_small_tilts_and_offsets_never_pass_in_silence(size):
    """In body frames along the axes the count is exact; in any other it is exact or said."""
    decided = 0
    for seed in range(15):
        rng = np.random.default_rng([7, seed])
        mechanism = random_mechanism(rng, 5, "RRRRPPH", terms=False, rotors=False)
        before = exact_count(mechanism, seed)
        joint = mechanism.joints[int(rng.integers(len(mechanism.joints)))]
        if seed % 3:
            joint.rotation = tilted(joint.rotation, int(2 / size))
        else:
            joint.position[0] += Fraction(int(size * 10**14), 10**14)
        count = exact_count(mechanism, seed)
        decided += count != before
        assert base_parameters(mechanism.robot()).size == count
        try:
            elsewhere = base_parameters(reframed(mechanism.robot(), rng))
        except RankError as refused:
            assert "joint" in str(refused)  # noqa: PT017
            continue
        assert elsewhere.size == count or elsewhere.warnings
    assert decided


@pytest.mark.parametrize("tilt", [1e-6, 1e-7, 1e-8, 1e-10])
def test_tilted_gravity_is_reported_with_its_angle(tilt):
    case = next(c for c in HARD if c["name"] == "SCARA g tilt 1e-6")
    base = base_parameters(mechanism_of(case).robot().with_gravity((9.81 * tilt, 0, -9.81)))
    assert base.size == 10
    assert f"gravity is off by {tilt:.2g} rad" in base.warnings[0]


def test_ordinary_robots_get_no_warnings():
    quiet = [c for c in HARD if "tilt" not in c["name"]]
    assert not [c["name"] for c in quiet if base_parameters(mechanism_of(c).robot()).warnings]


# -- random mechanisms -----------------------------------------------------------------------


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(
    "seeds",
    [
        *(range(10 * k, 10 * k + 10) for k in range(10)),
        *(
            pytest.param(range(1000 + 100 * k, 1100 + 100 * k), marks=pytest.mark.slow)
            for k in range(20)
        ),
    ],
    ids=str,
)
def test_random_trees_have_the_exact_count(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng)
        robot = mechanism.robot()
        base = base_parameters(robot)
        elsewhere = base_parameters(reframed(robot, rng))
        millimetres = base_parameters(reframed(robot, rng, 1000.0))
        count = exact_count(mechanism, seed)
        assert (base.size, elsewhere.size, millimetres.size) == (count,) * 3, seed
        assert consistency(base) < CONSISTENCY, seed


@pytest.mark.parametrize("seed", range(25))
def test_static_count_is_exact(seed):
    mechanism = random_mechanism(np.random.default_rng([1, seed]), largest=8)
    count = exact_count(mechanism, seed, static=True)
    assert base_parameters(mechanism.robot(), static=True).size == count


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("static", [False, True], ids=["moving", "at rest"])
def test_count_from_some_measured_joints_is_exact(seed, static):
    rng = np.random.default_rng([2, seed])
    mechanism = random_mechanism(rng, largest=8)
    n = len(mechanism.joints)
    some = sorted(rng.choice(n, size=rng.integers(1, n + 1), replace=False).tolist())
    robot = mechanism.robot()
    base = base_parameters(robot, measured=[robot.joints[j] for j in some], static=static)
    assert base.size == exact_count(mechanism, seed, measured=some, static=static)


# -- relations between runs ------------------------------------------------------------------


def floating(seed, rotors=False):
    mechanism = random_mechanism(np.random.default_rng([3, seed]), 6, "RRPH", False, rotors)
    for joint in mechanism.joints:
        joint.parent += 1
    root = Joint(-1, "F", fractions(np.eye(3, dtype=int).tolist()), fractions([0, 0, 0]))
    return Mechanism([root, *mechanism.joints], mechanism.gravity)


@pytest.mark.parametrize("seed", range(8))
def test_floating_base_agrees_with_the_direct_algorithm(seed):
    """Algorithm 3: every velocity and every functional, joint by joint."""
    robot = floating(seed).robot()
    frames = Frames.from_robot(robot)
    count = 10
    for screw in frames.first_screws[1:]:
        rows = np.vstack([momentum_map(screw), parameter_rate(screw)])
        count += np.linalg.matrix_rank(rows, tol=1e-9)
    assert base_parameters(robot).size == count


@pytest.mark.parametrize("seed", range(8))
def test_forces_on_a_floating_base_tell_as_much_as_all_joints(seed):
    """Theorem 3, after Ayusawa et al. (2014): joint torques add nothing without rotors."""
    robot = floating(seed).robot()
    everything = base_parameters(robot)
    wrench = base_parameters(robot, measured=["1"])
    assert wrench.size == everything.size
    np.testing.assert_array_equal(wrench.independent, everything.independent)
    np.testing.assert_allclose(wrench.K, everything.K, atol=1e-10)


def test_gravity_counts_as_a_direction_also_where_offsets_keep_it_apart():
    tilted = feasid.Robot.from_dh([(0.4, 0, 0.2, 0), (0, 0.3, 0.1, 0)], gravity=(0, 3, -9))
    apart = tilted.with_joint_terms(("offset",), drive_inertia=False)
    shared = feasid.Drive("both", {"1": 1.0, "2": 1.0}, ("Ia",))
    wanted = span_dimensions(base_parameters(tilted)).motion
    for robot in (apart, replace(apart, drives=(*apart.drives, shared))):
        assert span_dimensions(base_parameters(robot)).motion == wanted
    assert wanted > span_dimensions(base_parameters(replace(tilted, gravity=(0, 0, 0)))).motion


def test_rotors_are_not_seen_by_forces_on_the_base():
    mechanism = floating(1)
    mechanism.joints[1].kind = "R"
    mechanism.joints[1].rotor = Rotor(Fraction(9), mechanism.joints[1].rotation, [Fraction(0)] * 3)
    robot = mechanism.robot()
    assert base_parameters(robot, measured=["1"]).size < base_parameters(robot).size


def test_gravity_adds_nothing_to_a_floating_base():
    robot = floating(2).robot()
    assert base_parameters(robot).size == base_parameters(robot.with_gravity((0, 0, 0))).size


@pytest.mark.parametrize("order", ["left", "paper"])
def test_every_order_of_preference_spans_the_same_space(order):
    robot = random_mechanism(np.random.default_rng(11)).robot()
    a, b = base_parameters(robot), base_parameters(robot, order=order)
    assert a.size == b.size
    assert consistency(b) < CONSISTENCY
    scale = np.abs(b.K).max()
    np.testing.assert_allclose(b.K @ a.nullspace, 0, atol=1e-11 * scale)


def test_preferred_parameters_lead_when_they_can():
    robot = wam()
    plain = base_parameters(robot)
    wanted = [f"{b.name}.m" for b in reversed(robot.bodies)]
    base = base_parameters(robot, order=wanted)
    assert base.size == plain.size
    assert consistency(base) < 1e-10
    np.testing.assert_allclose(base.K @ plain.nullspace, 0, atol=1e-10 * np.abs(base.K).max())
    masses = [robot.parameter_names.index((b.name, "m")) for b in robot.bodies]
    assert np.isin(masses, base.independent).sum() > np.isin(masses, plain.independent).sum()


@pytest.mark.parametrize("seed", range(10))
def test_descriptor_spans_the_row_space_of_k(seed):
    robot = random_mechanism(np.random.default_rng([5, seed])).robot()
    base = base_parameters(robot)
    n = base.descriptor.toarray()
    assert n.shape == base.K.shape
    units = base.coefficients.parameter_units
    product, rows = n[:, base.independent] @ base.K * units, n * units
    np.testing.assert_allclose(product, rows, atol=1e-9 * np.abs(rows).max())
    assert np.linalg.matrix_rank(rows) == base.size


@pytest.mark.parametrize("seed", range(40))
def test_null_vectors_leave_the_torques_as_they_are(seed):
    rng = np.random.default_rng([6, seed])
    robot = random_mechanism(rng, kinds="RRRRPPPHSCULTF").robot()
    if seed % 2:
        robot = reframed(robot, rng)
    if seed % 3 == 0:
        robot = robot.with_joint_terms(drive_inertia=True)
    base = base_parameters(robot)
    q, dq, ddq = rng.normal(size=(3, 5, robot.dof))
    units = base.coefficients.parameter_units
    y = feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size) * units
    null = base.nullspace / units[:, None]
    change = np.abs(y @ (null / np.abs(null).max(axis=0)))
    assert change.max(initial=0.0) <= 1e-11 * np.abs(y).max()


# -- joint terms -----------------------------------------------------------------------------


def slide(direction, *symbols):
    motion = np.r_[0.0, 0, 0, direction]
    drive = feasid.Drive("1", {"1": 1.0}, symbols)
    return feasid.Robot((feasid.Body("1", None, motion=motion),), drives=(drive,))


def test_vertical_slide_mixes_mass_drive_inertia_and_offset():
    """The force is (m + Ia) ddq + 9.81 m + fo: two combinations of three."""
    base = base_parameters(slide((0.0, 0, 1), "Ia", "fo"))
    np.testing.assert_allclose(base.K[:, 9:], [[1, 0, 1 / 9.81], [0, 1, -1 / 9.81]], atol=1e-15)
    assert base.expressions[1] == f"Ia1 - {1 / 9.81:.12g} fo1"


def test_horizontal_slide_does_not_mix_offset_with_mass():
    base = base_parameters(slide((1.0, 0, 0), "Ia", "fv", "fo"))
    assert base.expressions == ("m1 + Ia1", "fv1", "fo1")


def test_motor_across_two_joints_adds_what_its_coupling_shows():
    """A wrist motor along dq1 + dq2 of two parallel axes, beside the joints' own drives."""
    rows = [(0, 0.0, 0, 0), (0, 0.0, 0, 0)]
    robot = feasid.Robot.from_dh(rows, gravity=(0, 0, 0)).with_joint_terms(
        friction=("viscous", "coulomb", "offset"),
        drive_inertia=True,
        couplings=[feasid.Drive("wrist", {"1": 1.0, "2": 1.0})],
    )
    base = base_parameters(robot)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 200, 2))
    y = feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size)
    assert np.linalg.matrix_rank(y, tol=1e-9) == base.size
    np.testing.assert_allclose(y @ base.Pb @ base.K, y, atol=1e-12)
    wrist = {
        s: st for (b, s), st in zip(robot.parameter_names, base.status, strict=True) if b == "wrist"
    }
    # both links turn about one axis: Lzz2 + wrist.Ia is all that a body beyond joint 2 shows
    assert wrist == {"Ia": COMBINED, "fv": ALONE, "fc": ALONE, "fo": COMBINED}


def test_opposite_motors_make_viscous_friction_redundant():
    """(dq1 + dq2)^2 + (dq1 - dq2)^2 = 2 dq1^2 + 2 dq2^2."""
    couplings = [
        feasid.Drive("sum", {"1": 1.0, "2": 1.0}, ("fv",)),
        feasid.Drive("difference", {"1": 1.0, "2": -1.0}, ("fv",)),
    ]
    robot = feasid.Robot.from_dh([(0, 1.0, 0, 0), (0, 1.0, 0, 0)]).with_joint_terms(
        friction=("viscous",), couplings=couplings
    )
    base = base_parameters(robot)
    assert "fv1 + 2 difference.fv" in base.expressions
    assert "sum.fv - difference.fv" in base.expressions


def test_rotor_on_a_joint_of_several_degrees_of_freedom_is_refused():
    body = feasid.Body("wrist", None, motion=np.eye(6)[:, :3], rotor=feasid.Rotor(3.0))
    with pytest.raises(UnsupportedJointError, match="'wrist'"):
        base_parameters(feasid.Robot((body,))).size  # noqa: B018


def test_sign_of_a_gear_decides():
    """A rotor on the joint's own axis with ratio +1 belongs to the link, with -1 it does not."""
    rows = [(0, 0.3, 0, 0), (0, 0.3, 0, 0)]
    arm = feasid.Robot.from_dh(rows, gravity=(0, 0, 0))
    for gear, count in ((1.0, 4), (-1.0, 5)):
        last = replace(arm.bodies[1], rotor=feasid.Rotor(gear))
        assert base_parameters(replace(arm, bodies=(arm.bodies[0], last))).size == count
