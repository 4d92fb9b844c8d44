"""A log played back says what an online fit says, in Python and at the prompt."""

import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main
from feasid.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    robot = feasid.load_robot(tmp_path / "arm.urdf").with_joint_terms()
    simulate(robot, arm_parameters(robot), 1, noise=0.02).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path


def test_a_log_is_played_back(folder):
    played = feasid.watch("log.csv", "arm.urdf", window=2.0, interval=0.5)
    again = feasid.OnlineFit(
        feasid.load_robot("arm.urdf"), played.online.rate, window=played.online.full,
        block=played.online.block,
    )  # fmt: skip
    raw = feasid.Recording("log.csv").raw(again.robot)
    again.extend(raw.values["q"], raw.values["tau"], raw.values.get("dq"), raw.t)
    assert again.reduced.rows == played.online.reduced.rows
    a, b = (x.reduced.triangles[0] for x in (again, played.online))
    assert (a == b).all()
    assert len(played.table) == len(played.estimates)
    assert "R2" in str(played)
    played.plot("watch.png")
    assert (folder / "watch.png").stat().st_size > 1000


def test_options_of_the_online_fit_are_known_or_refused(folder):
    with pytest.raises(InputError, match=r"online has no option 'cutof' \(did you mean 'cutoff'\?"):
        feasid.watch("log.csv", "arm.urdf", online={"cutof": 5.0})
    with pytest.raises(InputError, match=r"no option 'window': watch\(\) sets it itself"):
        feasid.watch("log.csv", "arm.urdf", online={"window": 100})
    played = feasid.watch("log.csv", "arm.urdf", window=2.0, online={"full": 77})
    assert played.online.full == 77


def test_the_prompt_tells_it_line_by_line(folder, capsys):
    status = main(
        [
            "watch",
            "log.csv",
            "--robot",
            "arm.urdf",
            "--window",
            "1",
            "--interval",
            "2",
            "--plot",
            "w.png",
        ]
    )
    printed = capsys.readouterr().out
    assert status in (0, 1)
    assert printed.count("error / nominal's") >= 3
    assert "exact rational arithmetic" in printed
    assert "wrote w.png" in printed
    last = [x for x in printed.splitlines() if "error / nominal's" in x][-1]
    assert ("identified" in last) == (status == 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--window", "-1"], "above 0"),
        (["--plot", "w.txt"], "ends in .png"),
    ],
)
def test_mistakes_are_named(folder, capsys, arguments, message):
    assert main(["watch", "log.csv", "--robot", "arm.urdf", *arguments]) == 2
    assert message in capsys.readouterr().err
