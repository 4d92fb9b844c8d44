"""Masses and centres in a written file are the fit's, by readers that are not ours."""

import math
import re
import xml.etree.ElementTree as ElementTree
from fractions import Fraction

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM
from thorough import some

import feasid
from feasid import datasets
from feasid.core.exact.poses import is_possible_inertia
from feasid.results.export.file_terms import fit_without_added_springs, friction_as_files_hold
from feasid.robot.dynamics.regressor import mass_matrix

LOGS = some(["kuka_lwr4", "unitree_z1", "staubli_tx40", "kinova_gen3", "double_pendulum"],
            "unitree_z1")  # fmt: skip

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


def assert_same(found, fit):
    """Mass and first moment by joint, as the fit has them without springs that no file holds."""
    plain = fit_without_added_springs(fit)
    for body, columns in zip(fit.robot.bodies, fit.robot.inertial_columns, strict=True):
        expected = plain[columns][6:]
        scale = max(np.abs(expected).max(), 1e-3)
        np.testing.assert_allclose(found[body.joint], expected, rtol=0, atol=ROUNDING * scale)


def configuration_of(model, positions):
    """Of a model of Pinocchio's with its joints, by name, at these positions."""
    q = pytest.importorskip("pinocchio").neutral(model)
    for joint, value in positions.items():
        own = model.joints[model.getJointId(joint)]
        both = [value] if own.nq == 1 else [math.cos(value), math.sin(value)]
        q[own.idx_q : own.idx_q + own.nq] = both
    return q


def test_pinocchio_finds_the_fitted_masses_and_centres(written):
    pinocchio = pytest.importorskip("pinocchio")
    fit, (urdf, _), _ = written
    model = pinocchio.buildModelFromUrdf(str(urdf))
    held = fit.robot.source.reading.get("lock", {})
    if held:
        joints = [model.getJointId(j) for j in held]
        model = pinocchio.buildReducedModel(model, joints, configuration_of(model, held))
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


def test_every_fitted_inertial_is_possible_by_the_decimals_in_the_file(written):
    fit, (urdf, _), _ = written
    fitted = {body.name for body in fit.robot.bodies}
    links = [x for x in ElementTree.parse(urdf).getroot().iter("link") if x.get("name") in fitted]
    assert len(links) == len(fitted)
    for inertial in (link.find("inertial") for link in links):
        entries = {k: Fraction(v) for k, v in inertial.find("inertia").attrib.items()}
        moments = [entries[k] for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        assert is_possible_inertia(Fraction(inertial.find("mass").get("value")), moments)


@pytest.mark.sampled(0.25)
def test_what_a_file_lacks_is_listed_in_a_line_each(written):
    fit, (urdf, mjcf), exports = written
    joints = {body.name: body.joint for body in fit.robot.bodies}
    for path, export in zip((urdf, mjcf), exports, strict=True):
        names = [name for name in export.written.lost if not re.search(r"gravity|\.k\d?$", name)]
        symbols = {name.rsplit(".", 1)[1] for name in names}
        own = [x for x in export.missing if not re.search("several|gravity|springs", x)]
        assert len(own) <= len(symbols)
        for body, symbol in (name.rsplit(".", 1) for name in names):
            if symbol == "fo":
                assert f" at {joints[body]}" in str(export)
            elif body in joints:
                (line,) = [x for x in export.missing if re.search(rf"\(.*\b{symbol}\b.*\)", x)]
                assert joints[body] in line
        assert str(path) in str(export)
    assert any("drive inertia (Ia)" in line for line in exports[0].missing)
    assert not any("drive inertia (Ia)" in line for line in exports[1].missing)


def test_joint_terms_in_the_file_are_those_of_the_fit(written):
    fit, (urdf, mjcf), _ = written
    for path, held in ((urdf, {"fv", "fc"}), (mjcf, {"Ia", "fv", "fc", "k"})):
        seen = (
            feasid.load_robot(path, **{**fit.robot.source.reading, "sidecar": False})
            if path == urdf
            else feasid.load_robot(path, sidecar=False)
        )
        theirs = {next(iter(d.coupling)): d for d in seen.drives if len(d.coupling) == 1}
        plain = fit.robot.with_values(fit_without_added_springs(fit))
        wanted = fit.robot.with_values(
            friction_as_files_hold(plain, fit.solution.problem, shared=path == mjcf)
        )
        for drive in wanted.drives:
            if len(drive.coupling) > 1:
                continue
            joint = next(iter(drive.coupling))
            own = dict(zip(drive.symbols, drive.values, strict=True))
            read = theirs.get(joint)
            values = dict(zip(read.symbols, read.values, strict=True)) if read else {}
            for symbol in held.intersection(own):
                assert values.get(symbol, 0.0) == pytest.approx(own[symbol], rel=1e-12, abs=1e-300)


HELD = {"slide": 0.02}


def test_a_fit_with_a_held_joint_is_what_is_read_back(tmp_path):
    """By us, and by others: mass matrix and gravity with the joint where it is held."""
    path = tmp_path / "fitted.urdf"
    robot = feasid.load_robot(ARM, lock=HELD)
    truth = robot.with_joint_terms()
    fit = feasid.fit(simulate(truth, arm_parameters(truth), 1, noise=0.02), robot, diagnose=False)
    fit.write(path, extensions=("mujoco",), force=True)
    for again in (feasid.load_robot(path), feasid.load_robot(path, lock=HELD)):
        assert again.parameter_names == fit.robot.parameter_names
        np.testing.assert_allclose(again.values, fit.robot.values, rtol=1e-12, atol=1e-15)
    mujoco, pinocchio = pytest.importorskip("mujoco"), pytest.importorskip("pinocchio")
    bodies = fit.robot.without_joint_terms()
    free = pinocchio.buildModelFromUrdf(str(path))
    other = mujoco.MjModel.from_xml_path(str(path))
    assert all(free.inertias[free.getJointId(j)].mass > 0 for j in (*fit.robot.joints, *HELD))
    assert (other.body_mass[1:] > 0).all()
    rng, joints = np.random.default_rng(0), list(fit.robot.joints)
    for q in rng.uniform(-1, 1, (5, len(joints))):
        still = np.zeros_like(q)
        gravity = feasid.inverse_dynamics(bodies, q[None], still[None], still[None])[0]
        inertia = mass_matrix(bodies, bodies.values, q)
        place = dict(zip(joints, q, strict=True)) | HELD
        data = mujoco.MjData(other)
        for joint, value in place.items():
            data.joint(joint).qpos = value
        mujoco.mj_forward(other, data)
        full = np.zeros((other.nv, other.nv))
        mujoco.mj_fullM(other, data, full)
        rows = [int(other.joint(j).dofadr[0]) for j in joints]
        configuration = configuration_of(free, place)
        ours = [free.joints[free.getJointId(j)].idx_v for j in joints]
        found = pinocchio.crba(free, free.createData(), configuration)
        lift = pinocchio.computeGeneralizedGravity(free, free.createData(), configuration)
        for matrix, bias in (
            (full[np.ix_(rows, rows)], data.qfrc_bias[rows]),
            (found[np.ix_(ours, ours)], lift[ours]),
        ):
            np.testing.assert_allclose(matrix, inertia, rtol=0, atol=1e-9 * np.abs(inertia).max())
            np.testing.assert_allclose(bias, gravity, rtol=0, atol=1e-9 * np.abs(gravity).max())
