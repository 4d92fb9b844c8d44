"""Online fits and replays give the numbers that they gave."""

import numpy as np
import pandas as pd
import pytest
from online.test_online_fit import RATE, base, log, log_of_changing_friction
from pinned import assert_pinned

import feasid

ROWS, EACH = 4000, 800

CASES = {
    "window": {"window": 800, "cutoff": 5.0},
    "forgetting": {"forgetting": 0.997, "smoother": "moving-average", "slow_weight": 0.6},
    "all": {"every": 3, "block": 30, "derivative_cutoff": 200.0, "full": 900, "prior_weight": 3.0},
    "speeds": {"window": 640, "smoother": "moving-average", "false_alarms": 3.0, "carrier": None},
}


def samples():
    """Friction that jumps, samples that are missing, repeated or out of order, and a rest."""
    q, tau = log_of_changing_friction(ROWS, lambda t: np.where(t > 12.0, 1.8, 1.0))
    q, tau, t = q.copy(), tau.copy(), np.arange(ROWS) / RATE
    t[300:] += 0.011
    t[700:] += 0.4
    t[1000] = t[998]
    q[1100] = np.nan
    tau[1200:1230, 1] = tau[1200, 1]
    still = 1e-7 * np.random.default_rng(0).standard_normal((400, q.shape[1]))
    q[3600:], tau[3600:] = q[3600] + still, tau[3600] + still
    return q, tau, np.gradient(q, 1 / RATE, axis=0), t


@pytest.mark.parametrize("name", CASES)
def test_estimates_decisions_and_changes(name):
    q, tau, dq, t = samples()
    given = {k: v for k, v in CASES[name].items() if v is not None}
    fit = feasid.OnlineFit(base().robot, RATE, base=base(), **given)
    found = []
    for k in range(0, ROWS, EACH):
        part = slice(k, k + EACH)
        fit.extend(q[part], tau[part], dq[part] if name == "speeds" else None, t[part])
        estimate = fit.estimate()
        kept = ("time", "rows", "delta", "noise", "r2_joints", "decision", "age", "fresh")
        found.append({x: getattr(estimate, x) for x in kept} | {"std": estimate.std})
    results = {"estimates": found, "changes": fit.changes, "faults": fit.faults}
    assert_pinned(f"online-{name}", results | {"samples": fit.samples, "time": fit.time})


def test_replays():
    q, tau = log(ROWS)
    names = base().robot.joints
    frame = pd.DataFrame(np.c_[np.arange(ROWS) / RATE, q, tau])
    frame.columns = ["t", *(f"{x}_{j}" for x in ("q", "tau") for j in names)]
    done = feasid.replay(frame, base().robot, window=0.9, interval=3.0, online={"block": 17})
    assert_pinned("replay", {"table": done.table.to_dict("list"), "line": done.line(-1)})
    with pytest.raises(feasid.errors.InputError, match="place of one of 7 estimates"):
        done.line(7)
