"""A log played back says what an online fit says, in Python and at the prompt."""

from copy import deepcopy

import numpy as np
import pytest
from logs import arm_and_log
from scipy.signal import savgol_filter

import feasid
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.logs.recording import read_signals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm_and_log(tmp_path, 2000, 0.02)
    return tmp_path


def test_a_log_is_played_back(folder):
    played = feasid.replay("log.csv", "arm.urdf", window=2.0, interval=0.5)
    again = feasid.OnlineFit(
        feasid.load_robot("arm.urdf"), played.online.rate, window=played.online.full,
        block=played.online.block,
    )  # fmt: skip
    raw = read_signals(feasid.Recording("log.csv"), again.robot)
    again.extend(raw.values["q"], raw.values["tau"], raw.values.get("dq"), raw.t)
    assert again.reduced.rows == played.online.reduced.rows
    a, b = (x.reduced.triangles[0] for x in (again, played.online))
    assert (a == b).all()
    assert len(played.table) == len(played.estimates)
    assert "R2" in str(played)
    assert len(played.plot().axes) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), [("kuka_lwr4", 0), ("kuka_lwr4", 1), ("unitree_z1", 0)])
def test_recorded_logs_hold_no_load_and_a_load_of_a_kilogram_is_found(name, part):
    """The load's torques are added to those recorded; 20 draws of its place and time per log."""
    dataset = feasid.datasets.DATASETS[name]
    if not dataset.folder.is_dir():
        pytest.skip("datasets are in a checkout only")
    robot = feasid.load_robot(dataset.folder / dataset.robot, lock=dataset.lock)
    log = read_signals(feasid.Recording(dataset.folder / dataset.logs[part]), robot)
    rate = 200.0
    online = feasid.OnlineFit(robot, rate, window=2000, block=25)
    q, tau, t = log.values["q"], log.values["tau"], log.t
    motion = [savgol_filter(q, 21, 3, d, 1 / rate, axis=0) for d in range(3)]
    rng = np.random.default_rng(7)
    starts = iter(np.sort(rng.choice(np.arange(60, 84), 20, replace=False)))
    snapshots, start = [], next(starts)
    for k in range(0, len(q), 50):
        if k // 50 == start:
            snapshots.append((k, deepcopy(online)))
            start = next(starts, None)
        online.extend(q[k : k + 50], tau[k : k + 50], t=t[k : k + 50])
        online.estimate()
    assert not online.changes
    for first, copy in snapshots:
        centre = [*rng.uniform(-0.05, 0.05, 2), rng.uniform(0.0, 0.1)]
        load = np.zeros(robot.size)
        body = feasid.robot.inertia.from_mass_com_inertia(1.0, centre, 1e-3 * np.eye(3))
        load[robot.inertial_columns[-1]] = body
        more = feasid.inverse_dynamics(robot, *motion, parameters=load)
        for k in range(first, first + 400, 50):
            part = slice(k, k + 50)
            copy.extend(q[part], tau[part] + more[part], t=t[part])
            copy.estimate()
            if copy.changes:
                break
        assert copy.changes, f"a load from {t[first]:.2f} s on was not found"
        assert copy.changes[0].kind == "load"
        assert copy.changes[0].size > 0


def test_options_of_the_online_fit_are_known_or_refused(folder):
    with pytest.raises(InputError, match=r"no option 'window': replay\(\) sets it itself"):
        feasid.replay("log.csv", "arm.urdf", online={"window": 100})
    played = feasid.replay("log.csv", "arm.urdf", window=2.0, online={"full": 77})
    assert played.online.full == 77


def test_the_prompt_tells_it_line_by_line(folder, capsys):
    order = ["replay", "log.csv", "--robot", "arm.urdf", "--window", "1", "--interval", "2"]
    status = main([*order, "--plot", "w.png"])
    printed = capsys.readouterr().out
    assert status in (0, 1)
    assert printed.count("error / nominal's") >= 3
    assert "exact rational arithmetic" in printed
    assert "wrote w.png" in printed
    last = [x for x in printed.splitlines() if "error / nominal's" in x][-1]
    assert ("identified" in last) == (status == 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--window", "-1"], "above 0"), (["--plot", "w.txt"], "ends in .png")],
)
def test_mistakes_are_named(folder, capsys, arguments, message):
    assert main(["replay", "log.csv", "--robot", "arm.urdf", *arguments]) == 2
    assert message in capsys.readouterr().err
