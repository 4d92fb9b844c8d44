"""Masses and centres in a written file are the fit's, by readers that are not ours."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from thorough import some

import feasid
from feasid import datasets
from feasid.identification.file_terms import held_friction

LOGS = some(
    ["kuka_lwr4", "unitree_z1", "staubli_tx40", "kinova_gen3", "double_pendulum"],
    "kuka_lwr4",
    "unitree_z1",
)

ROUNDING = 1e-12
"""Relative to the largest mass or first moment: sums over links, and products of rotations."""


@pytest.fixture(scope="module", params=LOGS)
def written(request, tmp_path_factory):
    """A fit of a packaged log, and its files."""
    df = datasets.load(request.param)
    fit = feasid.fit(df, diagnose=False, **df.attrs["options"])
    folder = tmp_path_factory.mktemp(request.param)
    paths = folder / "identified.urdf", folder / "identified.xml"
    exports = [fit.write(path, force=True) for path in paths]
    return fit, paths, exports


def numbers(element, key, count=3):
    given = element.get(key) if element is not None else None
    return np.array([float(x) for x in given.split()]) if given else np.zeros(count)


def frame(element):
    """Rotation and position of an ``<origin>``."""
    origin = element.find("origin")
    turn = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
    return turn, numbers(origin, "xyz")


def moments_of_urdf(path, robot):
    """Mass and first moment per moving link, rigidly attached links added, by ElementTree."""
    root = ElementTree.parse(path).getroot()
    held = robot.source.reading.get("lock", {})
    above = {
        j.find("child").get("link"): j for j in root.iter("joint") if j.find("child") is not None
    }
    moving = {j for body in robot.bodies for j in [body.joint]}
    out = {joint: np.zeros(4) for joint in moving}
    for link in root.iter("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        mass = float(inertial.find("mass").get("value"))
        place, name = frame(inertial)[1], link.get("name")
        while name in above and above[name].get("name") not in moving:
            joint = above[name]
            turn, shift = frame(joint)
            angle = float(held.get(joint.get("name"), 0.0))
            axis = numbers(joint.find("axis"), "xyz") if joint.find("axis") is not None else 0
            own = Rotation.from_rotvec(angle * np.asarray(axis)).as_matrix() if angle else np.eye(3)
            place, name = turn @ own @ place + shift, joint.find("parent").get("link")
        if name in above:
            out[above[name].get("name")] += mass * np.append(place, 1.0)
    return out


def assert_same(found, fit):
    """Mass and first moment by joint, as the fit has them."""
    for body, columns in zip(fit.robot.bodies, fit.robot.inertial_columns, strict=True):
        expected = fit.delta[columns][6:]
        scale = max(np.abs(expected).max(), 1e-3)
        np.testing.assert_allclose(found[body.joint], expected, rtol=0, atol=ROUNDING * scale)


def test_an_xml_reader_finds_the_fitted_masses_and_centres(written):
    fit, (urdf, _), _ = written
    assert_same(moments_of_urdf(urdf, fit.robot), fit)


def test_pinocchio_finds_the_fitted_masses_and_centres(written):
    pinocchio = pytest.importorskip("pinocchio")
    fit, (urdf, _), _ = written
    model = pinocchio.buildModelFromUrdf(str(urdf))
    held = fit.robot.source.reading.get("lock", {})
    if held:
        q = pinocchio.neutral(model)
        for joint, value in held.items():
            own = model.joints[model.getJointId(joint)]
            both = [value] if own.nq == 1 else [math.cos(value), math.sin(value)]
            q[own.idx_q : own.idx_q + own.nq] = both
        model = pinocchio.buildReducedModel(model, [model.getJointId(j) for j in held], q)
    found = {}
    for body in fit.robot.bodies:
        own = model.inertias[model.getJointId(body.joint)]
        found[body.joint] = own.mass * np.append(own.lever, 1.0)
    assert_same(found, fit)


def test_mujoco_finds_the_fitted_masses_and_centres(written):
    mujoco = pytest.importorskip("mujoco")
    fit, (_, mjcf), _ = written
    model = mujoco.MjModel.from_xml_path(str(mjcf))
    found = {}
    for body in fit.robot.bodies:
        k = int(model.joint(body.joint).bodyid[0])
        found[body.joint] = model.body_mass[k] * np.append(model.body_ipos[k], 1.0)
    assert_same(found, fit)


def test_what_a_file_lacks_is_listed_in_a_line_each(written):
    fit, (urdf, mjcf), exports = written
    joints = {body.name: body.joint for body in fit.robot.bodies}
    for path, export in zip((urdf, mjcf), exports, strict=True):
        symbols = {name.rsplit(".", 1)[1] for name in export.written.lost}
        shared = any("several joints" in line for line in export.missing)
        assert len(export.missing) <= len(symbols) + shared
        for name in export.written.lost:
            body, symbol = name.rsplit(".", 1)
            if symbol == "fo":
                assert f" at {joints[body]}" in str(export)
            elif body in joints:
                (line,) = [x for x in export.missing if f"({symbol})" in x]
                assert joints[body] in line
        assert str(path) in str(export)
    assert any("armature" in line for line in exports[0].missing)
    assert not any("armature" in line for line in exports[1].missing)


def test_joint_terms_in_the_file_are_those_of_the_fit(written):
    fit, (urdf, mjcf), _ = written
    for path, held in ((urdf, {"fv", "fc"}), (mjcf, {"Ia", "fv", "fc", "k"})):
        seen = (
            feasid.load_robot(path, **{**fit.robot.source.reading, "sidecar": False})
            if path == urdf
            else feasid.load_robot(path, sidecar=False)
        )
        theirs = {next(iter(d.coupling)): d for d in seen.drives if len(d.coupling) == 1}
        wanted = fit.robot.with_values(held_friction(fit.robot, fit.residual))
        for drive in wanted.drives:
            if len(drive.coupling) > 1:
                continue
            joint = next(iter(drive.coupling))
            own = dict(zip(drive.symbols, drive.values, strict=True))
            read = theirs.get(joint)
            values = dict(zip(read.symbols, read.values, strict=True)) if read else {}
            for symbol in held.intersection(own):
                assert values.get(symbol, 0.0) == pytest.approx(own[symbol], rel=1e-12, abs=1e-300)


def test_sidecar_holds_the_whole_model(written):
    fit, (urdf, _), _ = written
    whole = feasid.load_robot(urdf, **fit.robot.source.reading)
    np.testing.assert_array_equal(whole.with_values(fit.delta).values, fit.delta)
    assert whole.drives[0].symbols == fit.robot.drives[0].symbols
    np.testing.assert_array_equal(whole.values, fit.robot.values)
