"""Limbs and IMU of a floating robot in made-up equations: each fault by its numbers and words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import feasid
from feasid.logs.checks.floating import (
    TURNS,
    LimbEquations,
    _constant_force_findings,
    _flag_mistakes,
    _force_mistakes,
    _imu_mistakes,
    _share_without_contact,
)
from feasid.logs.floating import ContactSensor, Imu
from feasid.robot.dynamics.floating import FloatingMotion, frame_jacobian
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.rotations import from_rpy

RATE = 200.0
ROWS = np.arange(40, 1960, 4)
"""Every fourth row of a stretch of ten seconds."""


def base_with_two_legs():
    """Legs of two hinges each."""
    ten = feasid.robot.inertia.from_mass_com_inertia(1.0, [0.05, 0, -0.1], 0.01 * np.eye(3))
    bodies = [feasid.Body("base", None, motion=np.eye(6), inertial=5 * ten)]
    for side, y in (("L", 0.2), ("R", -0.2)):
        axis = [[1, 0], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0]]
        bodies += [
            feasid.Body(f"hip{side}", "base", position=[0, y, 0], inertial=ten,
                        motion=np.array(axis, dtype=float)[:, :1]),
            feasid.Body(f"leg{side}", f"hip{side}", position=[0, 0, -0.3], inertial=ten,
                        motion=np.array(axis, dtype=float)[:, 1:]),
        ]  # fmt: skip
    return feasid.Robot(tuple(bodies))


WALKER = base_with_two_legs()


@pytest.fixture(scope="module")
def limbs():
    """The equations of a walker whose legs push in turn."""
    robot = WALKER
    contacts = {side: ContactSensor(f"leg{side}", (0.0, 0.0, -0.3)) for side in "LR"}
    rng, n = np.random.default_rng(0), len(ROWS)
    motion = FloatingMotion(*(scale * rng.normal(size=(n, robot.dof)) for scale in (0.3, 1.0, 1.0)))
    t = np.arange(2000) / RATE
    whole = {
        side: np.stack(
            [5 * np.sin(7 * t + k), 4 * np.cos(11 * t), 30 + 25 * np.sin(9 * t + 2 * k)]
        ).T
        for k, side in enumerate("LR")
    }
    forces = {side: f[ROWS] for side, f in whole.items()}
    pushed = np.zeros((n, robot.dof))
    for side, touch in contacts.items():
        jacobian = frame_jacobian(robot, motion.q, touch.body, touch.position)[:, 3:]
        pushed += np.einsum("nij,ni->nj", jacobian, forces[side])
    torques = inverse_dynamics(robot, *motion, parameters=robot.values) - pushed
    return LimbEquations(
        motion, torques, contacts, forces, whole, {}, np.arange(6, robot.dof), ROWS, RATE, 0.0
    )


def changed(limbs, change):
    """With other forces, of the thinned rows and of all."""
    pairs = {s: change(s, f) for s, f in limbs.whole_forces.items()}
    return replace(limbs, whole_forces=pairs, forces={s: f[ROWS] for s, f in pairs.items()})


def only(found):
    (one,) = found
    return one


def test_right_forces_are_right(limbs):
    assert _force_mistakes(limbs, WALKER) == []
    assert _constant_force_findings(limbs) == []
    assert _force_mistakes(changed(limbs, lambda s, f: 0.55 * f), WALKER) == []
    assert _force_mistakes(changed(limbs, lambda s, f: 1.9 * f), WALKER) == []


@pytest.mark.parametrize("factor", [-1.0, 0.45, 2.1, 1 / 9.81, -0.1])
def test_forces_in_another_unit(limbs, factor):
    found = only(_force_mistakes(changed(limbs, lambda s, f: factor * f), WALKER))
    assert found.code == ("force-sign" if factor < 0 else "force-unit")
    assert found.values["factor"] == pytest.approx(1 / factor)
    what = "its sign is reversed" if factor < 0 else "a unit?"
    times = f"{1 / factor:.3g} times the force of L, R"
    assert found.message == f"the joints' torques correspond to {times}: {what}"
    assert found.remedy == f"multiply these columns by {1 / factor:.3g}"
    assert found.columns == tuple(f"force_{s}_{a}" for s in "LR" for a in "xyz")
    one = only(_force_mistakes(changed(limbs, lambda s, f: factor * f if s == "R" else f), WALKER))
    assert one.columns == tuple(f"force_R_{a}" for a in "xyz")


def test_exchanged_forces(limbs):
    other = dict(zip("LR", "RL", strict=True))
    swapped = changed(limbs, lambda s, f: limbs.whole_forces[other[s]])
    found = only(_force_mistakes(swapped, WALKER))
    assert (found.code, found.remedy) == ("swapped-forces", "exchange their columns")
    assert found.message.startswith(
        "the forces of contacts 'L' and 'R' look exchanged: each explains"
    )
    assert found.columns == tuple(f"force_{s}_{a}" for s in "LR" for a in "xyz")


@pytest.mark.parametrize("shift", [-20, -6, -2, 2, 7, 20])
def test_late_and_early_forces(limbs, shift):
    """By rows of five milliseconds; the lags that are tried lie that far apart, too."""
    moved = changed(limbs, lambda s, f: np.roll(f, shift, axis=0) if s == "R" else f)
    found = only(_force_mistakes(moved, WALKER))
    assert (found.code, found.columns[0]) == ("late-force", "force_R_x")
    assert found.values["lag"] == pytest.approx(shift / RATE)
    way = "late" if shift > 0 else "early"
    assert found.message == f"the force of contact 'R' is {5 * abs(shift)} ms {way}"
    near = changed(limbs, lambda s, f: np.roll(f, int(np.sign(shift)), axis=0))
    assert _force_mistakes(near, WALKER) == []


def test_a_dead_force(limbs):
    for size, dead in ((0.0, True), (0.019, True), (0.021, False)):
        largest = np.abs(limbs.forces["L"] - np.median(limbs.forces["L"], axis=0)).max()
        silent = np.zeros((2000, 3))
        silent[:, 2] = 3.0
        silent[ROWS[5], 2] += size * largest
        faint = changed(limbs, lambda s, f, silent=silent: silent if s == "R" else f)
        found = _constant_force_findings(faint)
        assert [f.code for f in found] == ["dead-force"] * dead
        if dead:
            assert found[0].message == (
                f"the force of contact 'R' changes by {size * largest:.2g} N at most, others' by "
                f"{largest:.3g} N: a dead sensor?"
            )
            assert found[0].remedy == "give contact_R (1 or 0) in place of its force"
            assert _force_mistakes(faint, WALKER) == []
    alone = replace(limbs, forces={"L": 0 * limbs.forces["L"]})
    assert _constant_force_findings(alone) == []


@pytest.mark.parametrize(("share", "told"), [(0.0, False), (0.19, False), (0.25, True)])
def test_flags_beside_forces(limbs, share, told):
    """Of a hundred rows half bear; some flags are wrong."""
    size = np.r_[np.full(50, 20.0), np.full(50, 1.0)]
    flag = np.r_[np.ones(50), np.zeros(50)]
    wrong = round(100 * share)
    flag[:wrong] = 0.0
    forces = {"L": size[:, None] * [0.6, 0.0, 0.8]}
    found = _flag_mistakes(replace(limbs, forces=forces, flags={"L": flag}))
    assert [f.code for f in found] == ["flags"] * told
    if told:
        assert found[0].message == "contact_L and the force of 'L' disagree in 25% of the rows"
        assert found[0].values["share"] == pytest.approx(share)


def test_shares_of_a_log_in_flight():
    """A twentieth of the weight of 9 kg is 4.4 N."""
    least = 0.05 * 9 * 9.81
    forces = {"L": np.array([[0, 0, 1.01], [0, 0, 0.99], [0, 0, 0], [1.01, 0, 0]]) * least}
    assert _share_without_contact(WALKER, forces, []) == 0.5
    both = {**forces, "R": np.roll(forces["L"], 1, axis=0)}
    assert _share_without_contact(WALKER, both, []) == 0.25
    assert _share_without_contact(WALKER, {}, [np.array([[1.0], [0.0], [0.0], [0.0]])]) == 0.75
    assert _share_without_contact(WALKER, {}, []) == 1.0


# -- the IMU ---------------------------------------------------------------------------------------


def imu_limbs(own, sign=1.0, unit=1.0, aloft=0.0):
    """Equations in which an IMU of this orientation shows a body that turns slowly."""
    rng = np.random.default_rng(1)
    turns = np.array([from_rpy(0.3 * rng.normal(size=3)) for _ in range(200)])
    spin = rng.normal(size=(200, 3))
    up = np.einsum("nji,j->ni", turns, [0, 0, 9.81])
    acc = sign * unit * (up + 0.1 * rng.normal(size=(200, 3))) @ own
    return SimpleNamespace(imu=(turns, spin, spin @ own, acc), aloft=aloft, rate=100.0)


ROBOT = SimpleNamespace(gravity=(0.0, 0.0, -9.81))
OWN = from_rpy(np.array([0.2, -0.1, 0.4]))


def test_right_angles_are_24():
    assert len({tuple(t.ravel()) for t in map(np.round, TURNS)}) == 24
    assert all(np.linalg.det(t) == pytest.approx(1.0) for t in TURNS)
    np.testing.assert_array_equal(TURNS[0], np.eye(3))


@pytest.mark.parametrize("k", range(24))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_right_angle_of_an_imu_is_found(k, sign):
    given = Imu("base", rotation=OWN)
    found = _imu_mistakes(imu_limbs(OWN @ TURNS[k], sign), ROBOT, given)
    if k == 0 and sign > 0:
        assert found == []
        return
    one = only(found)
    if k == 0:
        assert (one.code, one.remedy) == (
            "acceleration-sign", "turn the sign of acc_x, acc_y and acc_z",
        )  # fmt: skip
        assert one.message.startswith("the mean specific force is 2.00 g away from the opposite of")
        assert "with the accelerometer's sign turned it is 0.0" in one.message
        return
    assert one.code == "imu-axes"
    np.testing.assert_allclose(one.values["rotation"], OWN @ TURNS[k], atol=1e-6)
    remedy = f"imu={ {'link': 'base', 'rotation': one.values['rotation']} }"
    signs = ", and turn the sign of acc_x, acc_y and acc_z" * (sign < 0)
    assert one.remedy == remedy + signs
    what = " and the accelerometer's sign" * (sign < 0)
    assert f"with the IMU's axes{what} turned they are 0.0" in one.message


def test_units_of_an_imu():
    given = Imu("base", rotation=OWN)
    found = only(_imu_mistakes(imu_limbs(OWN, unit=0.1), ROBOT, given))
    assert found.code == "imu"
    assert "no right angle or sign explains it" in found.message
    assert found.values["factor"] == pytest.approx(0.1, rel=0.1)
    assert "(the mean is 0.09" in found.remedy
    assert _imu_mistakes(imu_limbs(OWN, unit=1.15), ROBOT, given) == []
    assert _imu_mistakes(imu_limbs(OWN, unit=0.1, aloft=0.6), ROBOT, given) == []
    weightless = SimpleNamespace(gravity=(0.0, 0.0, 0.0))
    found = only(_imu_mistakes(imu_limbs(OWN @ TURNS[5]), weightless, given))
    np.testing.assert_allclose(found.values["rotation"], OWN @ TURNS[5], atol=1e-6)
    assert _imu_mistakes(imu_limbs(OWN), weightless, given) == []
