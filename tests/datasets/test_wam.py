"""The reconstructed WAM against its Fourier series, and the reader of the authors' own logs."""

import json
from math import cos, pi, sin

import numpy as np
import pytest
import wam7_recorded

from feasid.core.errors import InputError
from feasid.datasets import wam
from feasid.robot import inertia

ATOL = 1e-12


def test_the_motion_is_the_published_series_and_its_derivatives():
    table, (t, q, dq, ddq) = wam.tables()["table5"], wam.motion()
    frequency, harmonics = 0.1 * pi, 5
    for k in (0, 777, 30000):
        for joint in range(7):
            a, b = table["a"][joint], table["b"][joint]
            value, slope, bend = table["q0"][joint], 0.0, 0.0
            for n in range(1, harmonics + 1):
                w = frequency * n
                value += a[n - 1] / w * sin(w * t[k]) - b[n - 1] / w * cos(w * t[k])
                slope += a[n - 1] * cos(w * t[k]) + b[n - 1] * sin(w * t[k])
                bend += w * (b[n - 1] * cos(w * t[k]) - a[n - 1] * sin(w * t[k]))
            found = q[k, joint], dq[k, joint], ddq[k, joint]
            np.testing.assert_allclose(found, (value, slope, bend), atol=ATOL)
    np.testing.assert_allclose(q[round(20.0 / table["sample_time_s"])], q[0], atol=ATOL)


def recorded_folder(folder, seed=0):
    """A download as the authors publish it, of a motion and a datasheet that are made up."""
    rng = np.random.default_rng(seed)
    logs, sheets = folder / "data" / "recdata", folder / "data" / "robotparams"
    logs.mkdir(parents=True)
    sheets.mkdir()
    (logs / "columns.txt").write_text("time(secs), q1(rads), ..., q7, tau1(Nm), ..., tau7\n")
    (logs / "empty.dat").write_bytes(b"")
    tables = {name: rng.normal(size=(50, 15)) for name in ("second", "first")}
    for name, table in tables.items():
        table[:, 0] = 1e-3 * np.arange(50)
        np.savetxt(logs / f"{name}.dat", table)
    values = {}
    for k in range(1, 8):
        side = rng.uniform(0.1, 0.4, 3)
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        tensor = turn @ np.diag((side @ side - side**2) / 12) @ turn.T
        values[k] = (1.0 + k, rng.normal(size=3) / 10, (1.0 + k) * tensor)
    sheet = {"inertia_values_symmetric_to_tensor_elements": True}
    for k, (mass, centre, tensor) in values.items():
        sheet[f"m_{k}"] = mass
        for a, axis in enumerate("xyz"):
            sheet[f"r_{k}{axis}"] = centre[a]
            for b in range(a, 3):
                sheet[f"sI_{k}{axis}{'xyz'[b]}"] = tensor[a, b] * (1 if a == b else -1)
    (sheets / "wam7_cad.json").write_text(json.dumps({"dyn_parms_com": sheet}))
    return tables, values


def test_recorded_logs_of_a_download_are_runs_of_a_robot_with_the_datasheets_bodies(tmp_path):
    tables, values = recorded_folder(tmp_path)
    log = wam7_recorded.load(tmp_path)
    assert list(log["run"].unique()) == ["first", "second"]
    for name, table in tables.items():
        part = log[log["run"] == name].drop(columns="run")
        assert list(part) == ["t", *(f"{s}_{k}" for s in ("q", "tau") for k in range(1, 8))]
        np.testing.assert_array_equal(part.to_numpy(), table)
    robot = log.attrs["robot"]
    for body, (mass, centre, tensor) in zip(robot.bodies, values.values(), strict=True):
        got_mass, got_centre, got_tensor = inertia.to_mass_com_inertia(body.inertial)
        assert got_mass == pytest.approx(mass)
        np.testing.assert_allclose(got_centre, centre, atol=ATOL)
        np.testing.assert_allclose(got_tensor, tensor, atol=ATOL)
    logs_alone = wam7_recorded.load(tmp_path / "data" / "recdata")
    assert logs_alone.drop(columns="run").equals(log.drop(columns="run"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "data/recdata/first.dat").write_text("1 " * 15 + "\n1 2\n"), "first.dat"),
        (lambda f: (f / "data/robotparams/wam7_cad.json").write_text("[1]"), "m_1, r_1x"),
        (lambda f: (f / "data/robotparams/wam7_cad.json").write_text("{"), "wam7_cad.json"),
        (lambda f: [p.unlink() for p in (f / "data/recdata").iterdir()], "cdsousa/wam7_dyn_ident"),
    ],
    ids=["short line", "no datasheet", "no JSON", "no logs"],
)
def test_downloads_that_are_not_as_published_are_refused(tmp_path, spoil, says):
    recorded_folder(tmp_path)
    spoil(tmp_path)
    with pytest.raises(InputError, match=says):
        wam7_recorded.load(tmp_path)
