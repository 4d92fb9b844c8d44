"""A robot that stands still teaches nothing: the gate and the detector of changes wait for motion.

The plant is MuJoCo's, of `benchmarks.online_faults`: a Panda with friction, armature, encoder steps
and torque noise, held by a stiff controller, and a description that is wrong by up to 40 %.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

pytest.importorskip("mujoco")

from benchmarks import online_faults
from feasid.applications.online.online_fit import OnlineFit

SEED = 3
WRIST = np.arange(7) == 6


@dataclass
class Run:
    """Estimates of one run, by time, the online fit in the end, and who knows the truth."""

    online: OnlineFit
    judge: online_faults.Judge
    times: list = field(default_factory=list)
    estimates: list = field(default_factory=list)

    def error(self, delta):
        """Relative torque error of a model's bodies, in motions that it has not seen."""
        return self.judge.error(self.online.robot, delta, False)

    def between(self, first, last):
        return [e for t, e in zip(self.times, self.estimates, strict=True) if first <= t < last]


def run(folder, *phases, joints=True):
    """Phases are (seconds, whether it moves); a stop freezes the arm where it is."""
    robot, description = online_faults.bodies(SEED)
    true = online_faults.simulate(
        online_faults.Scenario(phases, joints=joints), robot, folder, SEED
    )
    q = np.round(true.q / online_faults.STEP) * online_faults.STEP
    tau = true.tau + online_faults.NOISE * np.random.default_rng(0).standard_normal(true.tau.shape)
    out = Run(
        OnlineFit(description, online_faults.RATE, window=online_faults.WINDOW),
        online_faults.Judge(robot),
    )
    for k in range(0, len(q), online_faults.EVERY):
        rows = slice(k, k + online_faults.EVERY)
        out.online.extend(q[rows], tau[rows], t=true.t[rows])
        out.times.append((k + online_faults.EVERY) / online_faults.RATE)
        out.estimates.append(out.online.estimate())
    return out


@pytest.mark.slow
def test_an_arm_that_is_held_still_from_the_start_opens_no_gate(tmp_path):
    still = run(tmp_path, (10.0, False))
    assert not any(e.decision.open for e in still.estimates)
    assert not still.online.changes
    nominal = still.error(still.online.problem.nominal)
    assert max(still.error(e.delta) for e in still.estimates) < 1.0001 * nominal
    last = still.estimates[-1]
    assert last.age == pytest.approx(10.0, abs=0.2)
    assert f"nothing has moved for {last.age:.1f} s" in last.decision.reasons
    assert "nothing has moved" in repr(last)


@pytest.mark.slow
def test_after_an_emergency_stop_the_last_verified_model_stays(tmp_path):
    """Ten seconds at rest, no load without motion, and the gate where it was; then on."""
    stopped = run(tmp_path, (6.0, True), (10.0, False), (4.0, True))
    assert all(e.decision.open for e in stopped.between(5.0, 20.0))
    assert list(stopped.online.changes) == []
    errors = [stopped.error(e.delta) for e in stopped.between(5.0, 20.1)]
    assert max(errors) < stopped.error(stopped.online.problem.nominal)
    resting = stopped.between(7.0, 16.0)
    assert len({e.delta.tobytes() for e in resting}) == 1
    assert [e.age for e in resting] == sorted(e.age for e in resting)
    assert resting[-1].age > 9.0
    assert stopped.estimates[-1].age == 0.0


def test_a_gate_that_is_closed_stays_closed_at_rest(tmp_path):
    """Two of three decisions before the stop agree; standing still adds none."""
    stopped = run(tmp_path, (2.0, True), (5.0, False))
    assert not any(e.decision.open for e in stopped.estimates)


@pytest.mark.slow
def test_one_moving_joint_does_not_open_the_gate_for_seven(tmp_path):
    one = run(tmp_path, (8.0, True), joints=WRIST)
    assert not any(e.decision.open for e in one.estimates)
    assert any("% of the directions" in r for r in one.estimates[-1].decision.reasons)


def test_enough_motion_opens_it(tmp_path):
    moving = run(tmp_path, (6.0, True))
    assert moving.estimates[-1].decision.open
    assert moving.estimates[-1].decision.evidence.known > 0.9
