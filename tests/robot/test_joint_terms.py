"""Joint terms of description files: what MuJoCo does with them, `inverse_dynamics` does, too."""

import re
from enum import IntFlag

import numpy as np
import pytest
from mjcf_files import FULL, model, wheel_models, write
from robots import MODELS

import feasid
from feasid import inverse_dynamics, load_robot
from feasid.core.errors import DescriptionError, InputError, MissingExtraError
from feasid.robot.formats.terms import EFFECTS

mujoco = pytest.importorskip("mujoco")
mujoco_side = pytest.importorskip("mujoco_side")
pytestmark = pytest.mark.usefixtures("elsewhere")

RTOL = 1e-10
"""Both sides add a few hundred products in double precision; relative to the largest torque."""

GENERATED = 200
STATES = 5


def differences(path, rng, ignore=()):
    """Relative differences to `mj_inverse` at random states, dry friction slipping."""
    robot = load_robot(path, ignore=ignore)
    compiled = mujoco.MjModel.from_xml_path(str(path))
    compiled.opt.disableflags |= mujoco_side.ONLY_FRICTIONLOSS
    out = []
    for _ in range(STATES):
        q, ddq = rng.uniform(-1, 1, (2, robot.dof))
        dq = rng.uniform(0.5, 2, robot.dof) * rng.choice([-1, 1], robot.dof)
        theirs = mujoco_side.inverse(compiled, robot, q, dq, ddq)
        if theirs is not None:
            ours = inverse_dynamics(robot, q, dq, ddq)[0]
            out.append(float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
    return out


def readable():
    """Wheel models that are read, and what is refused in the others."""
    read, refused = [], {}
    for path in wheel_models():
        try:
            load_robot(path)
            read.append(path)
        except DescriptionError as error:
            refused[path.stem] = error.effect
        except (MissingExtraError, InputError):  # masses from meshes; nothing that moves
            continue
    return read, refused


@pytest.mark.parametrize("path", readable()[0], ids=lambda p: p.stem)
def test_wheel_models_have_mujocos_inverse_dynamics(path):
    found = differences(path, np.random.default_rng(0))
    assert found
    assert max(found) < RTOL


def test_the_wheel_models_that_are_refused_are_these():
    assert readable()[1] == {"swimmer": "fluid", "model": "gravcomp"}


def random_model(rng):
    """A tree of up to six bodies whose joints have random terms, by default, class and element."""

    def terms(share):
        names = {"armature": 0.5, "damping": 3, "frictionloss": 2, "stiffness": 5}
        given = {k: f"{rng.uniform(0.01, v):.3f}" for k, v in names.items() if rng.random() < share}
        if rng.random() < share:
            given["springref"] = f"{rng.uniform(-30, 30):.2f}"
        return " ".join(f'{k}="{v}"' for k, v in given.items())

    def vector(scale=0.3):
        return " ".join(f"{x:.3f}" for x in rng.uniform(-scale, scale, 3))

    def inertial():
        a, b, c = rng.uniform(0.01, 0.1, 3)
        return (
            f'<inertial pos="{vector(0.1)}" mass="{rng.uniform(0.2, 3):.3f}" '
            f'diaginertia="{b + c:.4f} {a + c:.4f} {a + b:.4f}" quat="1 {vector()}"/>'
        )

    bodies = int(rng.integers(1, 7))
    texts, parents = [], [int(rng.integers(-1, k)) if k else -1 for k in range(bodies)]
    for k in range(bodies):
        kind = rng.choice(["hinge", "slide"])
        by_class = rng.choice(["", ' class="stiff"', ' class="inner"'])
        reference = f' ref="{rng.uniform(-1, 1):.2f}"' if rng.random() < 0.3 else ""
        joint = (
            f'<joint name="j{k}" type="{kind}" axis="{vector(1)}" pos="{vector()}"{reference}'
            f"{by_class} {terms(0.3)}/>"
        )
        texts.append(f'<body name="b{k}" pos="{vector()}" euler="{vector(90)}">{joint}{inertial()}')

    def subtree(k):
        return texts[k] + "".join(subtree(i) for i in range(bodies) if parents[i] == k) + "</body>"

    unit = rng.choice(["degree", "radian"])
    return (
        f'<mujoco><compiler angle="{unit}"/><option gravity="{vector(9.81)}"/>'
        f"<default><joint {terms(0.3)}/>"
        f'<default class="stiff"><joint {terms(0.6)}/>'
        f'<default class="inner"><joint {terms(0.4)}/></default></default></default><worldbody>'
        + "".join(subtree(k) for k in range(bodies) if parents[k] < 0)
        + "</worldbody></mujoco>"
    )


@pytest.mark.slow
def test_generated_models_have_mujocos_inverse_dynamics(tmp_path):
    rng = np.random.default_rng(7)
    worst, compared = 0.0, 0
    for _ in range(GENERATED):
        found = differences(write(tmp_path, random_model(rng)), rng)
        compared += bool(found)
        worst = max([worst, *found])
    assert compared == GENERATED
    assert worst < RTOL


def test_a_compiled_model_has_the_same_terms(tmp_path):
    rng = np.random.default_rng(8)
    for _ in range(20):
        path = write(tmp_path, random_model(rng))
        ours, theirs = load_robot(path), load_robot(path, use_mujoco=True)
        assert [d.name for d in ours.drives] == [d.name for d in theirs.drives]
        for a, b in zip(ours.drives, theirs.drives, strict=True):
            assert (a.symbols, dict(a.coupling)) == (b.symbols, dict(b.coupling))
            np.testing.assert_allclose([*a.values, a.rest], [*b.values, b.rest], rtol=1e-14)


# -- what is refused ------------------------------------------------------------------------------

SLIDE = f'<joint name="x" type="slide"/><inertial {FULL}/>'
TENDON = '<tendon><fixed name="rope" {}><joint joint="x" coef="1"/></fixed></tendon>'
ACTING = {
    "tendon": model(SLIDE, joint="").replace(
        "</mujoco>", TENDON.format('stiffness="3"') + "</mujoco>"
    ),
    "fluid": model(SLIDE, '<option viscosity="0.1"/>', joint=""),
    "gravcomp": model(SLIDE, joint="").replace('name="b"', 'name="b" gravcomp="1"'),
    "actuator": model(SLIDE, joint="").replace(
        "</mujoco>", '<actuator><motor name="m" joint="x" armature="1"/></actuator></mujoco>'
    ),
    "nonlinear": model(SLIDE.replace('name="x"', 'name="x" damping="1 2"'), joint=""),
    "multidof": model(f'<joint type="ball" damping="2"/><inertial {FULL}/>', joint=""),
}


@pytest.mark.parametrize("kind", ACTING)
@pytest.mark.parametrize("use_mujoco", [False, True])
def test_forces_that_are_not_modelled_are_refused_by_name(tmp_path, kind, use_mujoco):
    path = write(tmp_path, ACTING[kind])
    with pytest.raises(DescriptionError, match=re.escape(EFFECTS[kind])) as caught:
        load_robot(path, use_mujoco=use_mujoco)
    assert caught.value.effect == kind
    assert f"ignore=['{kind}']" in str(caught.value)
    robot = load_robot(path, use_mujoco=use_mujoco, ignore=[kind])
    assert any("ignored as asked" in note for note in robot.source.notes)
    with pytest.raises(InputError, match="did you mean"):
        load_robot(path, ignore=[kind[:-1]])


def test_a_force_by_default_class_is_refused_and_a_tendon_without_any_is_listed(tmp_path):
    rope = ACTING["tendon"].replace('stiffness="3"', "")
    robot = load_robot(write(tmp_path, rope))
    assert any("tendon ('rope')" in note for note in robot.source.notes)
    motor = ACTING["actuator"].replace(' armature="1"', "")
    for text, default, words in (
        (rope, "tendon", "tendon 'rope' has damping=1"),
        (motor, "general", "actuator 'm' has damping=1"),
    ):
        text = text.replace("<mujoco>", f'<mujoco><default><{default} damping="1"/></default>')
        with pytest.raises(DescriptionError, match=words):
            load_robot(write(tmp_path, text))


def test_flags_switch_terms_off(tmp_path):
    terms = 'damping="1" stiffness="2" frictionloss="3" armature="4"'
    joint = f'<joint name="x" {terms}/>'

    def symbols(flags):
        text = model(f"<inertial {FULL}/>", f"<option><flag {flags}/></option>", joint)
        path = write(tmp_path, text)
        ours, theirs = load_robot(path), load_robot(path, use_mujoco=True)
        assert [d.symbols for d in ours.drives] == [d.symbols for d in theirs.drives]
        np.testing.assert_array_equal(ours.gravity, theirs.gravity)
        return ours.drives[0].symbols

    assert symbols('contact="enable"') == ("Ia", "fv", "fc", "k")
    assert symbols('damper="disable"') == ("Ia", "fc", "k")
    assert symbols('spring="disable"') == ("Ia", "fv", "fc")
    assert symbols('frictionloss="disable" gravity="disable"') == ("Ia", "fv", "k")
    assert symbols('constraint="disable"') == ("Ia", "fv", "k")


def test_the_flags_are_those_of_the_mujoco_that_compiled(tmp_path, monkeypatch):
    """Until MuJoCo 3.3.5 springs and dampers had one bit, and gravity what is now the dampers'."""
    names = ("CONSTRAINT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT", "PASSIVE", "GRAVITY")
    old = IntFlag("mjtDisableBit", [f"mjDSBL_{name}" for name in names])
    joint = '<joint name="x" damping="1" stiffness="2"/>'
    path = write(tmp_path, model(f"<inertial {FULL}/>", joint=joint))
    compiled = mujoco.MjModel.from_xml_path(str(path))
    monkeypatch.setattr(mujoco, "mjtDisableBit", old)

    def without(bit):
        compiled.opt.disableflags = int(bit)
        robot = load_robot(compiled)
        return bool(robot.gravity.any()), tuple(s for d in robot.drives for s in d.symbols)

    assert without(0) == (True, ("fv", "k"))
    assert without(old.mjDSBL_GRAVITY) == (False, ("fv", "k"))
    assert without(old.mjDSBL_PASSIVE) == (True, ())


# -- what is said -----------------------------------------------------------------------------


def test_what_is_left_out_is_listed_by_name(tmp_path):
    rest = (
        '<actuator><motor name="m1" joint="x"/><motor joint="x"/></actuator>'
        '<sensor><jointpos name="s" joint="x"/></sensor>'
        "</mujoco>"
    )
    path = write(tmp_path, model(SLIDE, joint="").replace("</mujoco>", rest))
    for use_mujoco in (False, True):
        (note,) = load_robot(path, use_mujoco=use_mujoco).source.notes
        for words in ("2 x actuator ('m1'", "sensor ('s')"):
            assert words in note


def test_a_urdfs_dynamics_are_drives_and_the_rest_is_listed():
    robot = load_robot(MODELS / "dynamics.urdf")
    (drive,) = robot.drives
    assert dict(zip(drive.symbols, drive.values, strict=True)) == {"fv": 0.5, "fc": 0.25}
    assert inverse_dynamics(robot, [0.3], [-2.0], [0.0])[0, 0] == pytest.approx(-2 * 0.5 - 0.25)
    terms, left = robot.source.notes
    assert "viscous friction of 1 joint, Coulomb friction of 1 joint" in terms
    assert left.endswith("<transmission> ('t'); <gazebo> ('a'); <dynamics spring_stiffness=> ('j')")


def test_a_spring_is_a_parameter_like_the_others():
    spring = feasid.Drive("1", {"1": 1.0}, ("fv", "k"), [0.5, 20.0], rest=0.3)
    robot = feasid.Robot.from_dh([(0, 0.5, 0, 0)], gravity=(0, -9.81, 0))
    robot = feasid.Robot(robot.bodies, robot.gravity, drives=(spring,))
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.standard_normal((3, 40, 1))
    delta = rng.standard_normal(robot.size)
    tau = inverse_dynamics(robot, q, dq, ddq, parameters=delta)
    np.testing.assert_allclose(feasid.regressor(robot, q, dq, ddq) @ delta, tau, rtol=1e-12)
    base, rows = feasid.base_parameters(robot), feasid.regressor(robot, q, dq, ddq)[:, 0, :]
    assert len(base.independent) == np.linalg.matrix_rank(rows)
    assert robot.with_joint_terms(("viscous",)).drives[0].symbols == ("fv", "k")
    assert robot.with_joint_terms(()).drives[0].rest == 0.3
