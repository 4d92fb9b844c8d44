"""Saved online fits that are damaged; what a whole one keeps is `benchmarks/round_trip.py`."""

import json

import numpy as np
import pytest
from seeds import seed_of
from written import changed_archive, model_of_archive

import feasid
from benchmarks.online_states import RATE, chain, log_of, seen


def test_a_change_and_a_gate_that_opened_are_kept(tmp_path):
    """That the states above are what they are called, with options of this test's own."""
    robot = chain()
    q, dq, tau, _ = log_of(robot, np.random.default_rng(seed_of("drawn")), 2600)
    fit = feasid.OnlineFit(robot, RATE, cutoff=5.0)
    for first in range(0, 2600, 100):
        fit.extend(q[first : first + 100], tau[first : first + 100], dq[first : first + 100])
        fit.estimate()
    assert fit.changes
    assert any(d.open for d in fit.decisions)
    fit.save(tmp_path / "online.feasid")
    assert seen(feasid.load(tmp_path / "online.feasid")) == seen(fit)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("online") / "a.feasid"
    fit = feasid.OnlineFit(chain(), RATE, window=400)
    q, _, tau, _ = log_of(chain(), np.random.default_rng(0), 300)
    fit.extend(q, tau)
    fit.estimate()
    fit.save(path)
    return path


def refusal(read):
    """The message of an error of the package's own; None where there is none."""
    try:
        read()
    except feasid.FeasidError as error:
        return str(error)


def test_damaged_files_and_those_of_an_earlier_format_are_refused(saved, tmp_path):
    """Each number of the state, one after the other, is of another kind."""
    model, rng = model_of_archive(saved), np.random.default_rng(seed_of("drawn"))
    text = json.dumps(model | {"version": 4})
    older = changed_archive(saved, tmp_path / "old", **{"model.json": text})
    with pytest.raises(feasid.errors.InputError, match="of format 4") as refused:
        feasid.load(older)
    assert str(older) in str(refused.value)
    texts = ["[]", json.dumps(model)[:99]]
    parts = model["record"]["of"]["state"]["items"]
    for k, (_, part) in enumerate(parts):
        for j in range(len(part["items"])):
            damaged = json.loads(json.dumps(model))
            wrong = ("x", [[1]], -7)[rng.integers(3)]
            damaged["record"]["of"]["state"]["items"][k][1]["items"][j][1] = wrong
            texts.append(json.dumps(damaged))
        damaged = json.loads(json.dumps(model))
        damaged["record"]["of"]["state"]["items"][k][1]["items"].append(["more", 1])
        texts.append(json.dumps(damaged))
    allowed = 0
    for text in texts:
        damaged = changed_archive(saved, tmp_path / "b.feasid", **{"model.json": text})
        message = refusal(lambda path=damaged: feasid.load(path).estimate())
        allowed += message is None
        assert message is None or str(damaged) in message
    assert allowed <= 3  # numbers that any number may be: two clocks and a share
    with pytest.raises(feasid.FeasidError, match="exists"):
        feasid.load(saved).save(saved)
