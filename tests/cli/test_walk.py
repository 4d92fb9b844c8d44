"""A new user's walk: a log as people have it, mended by following the messages alone."""

import re
import shlex

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main

ERROR = 0.03
"""Relative error of the mended fit: the noise of the simulated torques."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A CSV with its own names, degrees, an unnamed clock and a hole."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    robot = feasid.load_robot("arm.urdf")
    terms = robot.with_joint_terms()
    log = simulate(terms, arm_parameters(terms), 1, noise=0.05)
    log = log.drop(columns=[c for c in log if c.startswith("ddq_")])
    turning = [c for c in log if c.startswith(("q_", "dq_")) and "slide" not in c]
    log[turning] = np.rad2deg(log[turning])
    names = {"q": "position", "dq": "velocity", "tau": "effort"}
    log = log.rename(columns=lambda c: re.sub(r"^(q|dq|tau)_", lambda m: f"{names[m[1]]}_", c))
    log = log.rename(columns={"t": "stamp"})
    log.loc[700, "position_shoulder"] = np.nan
    log.to_csv("mine.csv", index=False)
    return tmp_path


def test_messages_alone_lead_to_a_fit(folder, capsys):
    order = ["doctor", "mine.csv", "--robot", "arm.urdf"]
    for _ in range(4):  # names, clock; what the values say comes together
        main(order)
        said = "".join(capsys.readouterr())
        mended = re.search(r"^mended: (.*)$", said, re.M)
        if mended:
            break
        found = re.search(r"--columns ('.*?'|[^' ]\S*)", said)
        assert found, said
        order = [
            *order[:4],
            "--columns",
            ",".join([*order[5:], *shlex.split(found[1].rstrip(",.;"))]),
        ]
    assert mended, said
    words = shlex.split(mended[1])
    assert {"--columns", "--nan", "--units"} <= set(words)
    assert main([*words[1:], "--out", "mine.urdf", "--save", "mine.feasid"]) == 0, (
        capsys.readouterr()
    )
    fit = feasid.load("mine.feasid")
    assert fit.relative_error["all"] < ERROR
    assert feasid.check("mine.urdf").feasible


def test_fit_itself_is_doubtful_and_names_the_options_that_help(folder, capsys):
    columns = '{"q": "position_{}", "dq": "velocity_{}", "tau": "effort_{}", "t": "stamp"}'
    status = main(["fit", "mine.csv", "--robot", "arm.urdf", "--columns", columns,
                   "--nan", "drop-segments"])  # fmt: skip
    said = capsys.readouterr()
    assert status == 0
    assert "doubtful" in said.out
    assert "--units" in said.out
    assert "cells without a finite" not in said.out + said.err
