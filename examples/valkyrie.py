"""Identification and control at the same time, as in the Valkyrie paper: its gate, its controller.

    pip install feasid                       # nothing else is needed
    python examples/valkyrie.py

`published_options` are the paper's online experiment: 50 rows at 3 Hz, moving-average
accelerations, and a gate that opens on the coefficient of determination R2 alone.
`AdaptiveControl` is computed torque, eq. (37), with the model that is identified meanwhile;
`online_arm.py` moves an arm with it. What remains of `feasid` are feasibility and the prior
towards the nominal model, where the paper weighs a guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import feasid
from feasid.robot import inertia

BUFFER, ROWS_PER_SECOND, R2 = 50, 3.0, 0.95

PUBLISHED_RULES = feasid.AcceptanceRules(
    r2=R2,
    r2_closing=R2,
    ratio=1e9,
    ratio_closing=1e9,
    worst=1e9,
    inertia=(1e-9, 1e9),
    patience=1,
    known=0.0,
)
"""A full buffer and R2, nothing else: met by models that are wrong by a fifth."""


def published_options(rate: float) -> dict[str, Any]:
    """Options of `feasid.OnlineFit` as in the paper, for samples at `rate` [Hz], at least 6."""
    if not rate >= 2 * ROWS_PER_SECOND:
        raise ValueError(f"the rate must be at least {2 * ROWS_PER_SECOND:g} Hz, not {rate!r}")
    every = round(rate / ROWS_PER_SECOND)
    return {
        "window": BUFFER * every,
        "block": every,
        "every": every,
        "smoother": "moving-average",
        "cutoff": 0.4 * rate,
        "derivative_cutoff": min(10.0, 0.4 * rate),
        "slow_weight": 1.0,
        "rules": PUBLISHED_RULES,
    }


class AdaptiveControl:
    """A controller that learns the robot that it moves, and never waits for what it learns.

    Torques are those of the nominal model until the gate of the online fit opens, and again when it
    closes. Models change within `blend` seconds along a straight line of base parameters, on which
    every model is feasible if both ends are. `effort` (dof,) limits the torques, `backend` is that
    of `feasid.ComputedTorque`; with `worker` a thread learns, else `observe` and `decide` take the
    time of learning, for simulations. Further options are those of `feasid.OnlineFit`.
    """

    def __init__(
        self, robot, rate, *, blend=0.5, effort=None, backend="auto", worker=True, **options
    ):
        if not (np.isfinite(blend) and blend >= 0):
            raise ValueError(f"blend must be a time in seconds, not {blend!r}")
        self.online = feasid.OnlineFit(robot, rate, worker=worker, **options)
        nominal = self.online.robot.with_values(self.online.problem.nominal)
        self.model = feasid.ComputedTorque(
            nominal, effort=effort, base=self.online.base, backend=backend
        )
        self.nominal = self.model.beta
        self._from, self._target = self.nominal, self.nominal
        self._done, self._step = 1.0, 1.0 / max(1.0, blend * rate)
        self._estimate: feasid.OnlineEstimate | None = None

    def observe(self, q, tau, dq=None, t=None) -> None:
        """Take one sample, as `OnlineFit.update` does, and a step towards the model to be used."""
        self.online.update(q, tau, dq, t)
        self._follow_estimate()
        if self._done < 1.0:
            self._done = min(1.0, self._done + self._step)
            self.model.use(self._from + self._done * (self._target - self._from))

    def decide(self) -> feasid.OnlineEstimate | None:
        """Request an estimate; the newest that is ready and judged, None before the first."""
        self.online.request_estimate()
        self._follow_estimate()
        return self._estimate

    def _follow_estimate(self) -> None:
        """Aim at the newest verified model where the gate is open, else at the nominal one."""
        estimate = self.online.latest
        if estimate is None or estimate is self._estimate:
            return
        self._estimate = estimate
        target = estimate.beta if estimate.decision.open else self.nominal
        if not np.array_equal(target, self._target):
            self._from, self._target, self._done = self.model.beta, target, 0.0

    @property
    def uses_identified_model(self) -> bool:
        """Whether the controller uses the identified model or is changing over to it."""
        return self._estimate is not None and self._estimate.decision.open

    def close(self) -> None:
        """End the thread that learns."""
        self.online.close()

    def torque(self, q, dq, ddq) -> np.ndarray:
        """Torques (dof,) for a commanded acceleration."""
        return self.model.torque(q, dq, ddq)


RATE = 60.0


def recorded_arm(seconds: float = 20.0) -> tuple[feasid.Robot, pd.DataFrame]:
    """An arm of three joints and a log of it, whose torques are 1.5 times its description's."""
    robot = feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.2, 0), (0, 0.5, 0, 0), (0, 0.4, 0, 0)])
    link = inertia.from_mass_com_inertia(1.0, [0.1, 0.0, 0.0], 0.01 * np.eye(3))
    robot = robot.with_values(np.tile(link, len(robot.bodies)))
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi * np.array([0.21, 0.33, 0.47])
    q, dq = np.sin(np.outer(t, w)), np.cos(np.outer(t, w)) * w
    tau = 1.5 * feasid.inverse_dynamics(robot, q, dq, -q * w**2)
    columns = {"t": t}
    for k, joint in enumerate(robot.joints):
        columns |= {f"q_{joint}": q[:, k], f"dq_{joint}": dq[:, k], f"tau_{joint}": tau[:, k]}
    return robot, pd.DataFrame(columns)


def replay_published(log: pd.DataFrame, robot: feasid.Robot, rate: float) -> feasid.Replay:
    """The log through an online fit with the paper's options, with three decisions per second."""
    options = published_options(rate)
    seconds = options.pop("window") / rate
    return feasid.replay(log, robot, window=seconds, interval=1 / ROWS_PER_SECOND, online=options)


def main() -> None:
    """When the gate opens on a log: by the published rules, and by those of this package."""
    robot, log = recorded_arm()
    played = {"published": replay_published(log, robot, RATE), "default": feasid.replay(log, robot)}
    for name, run in played.items():
        opened = run.table[run.table["open"]]
        print(f"{name} rules: open at {opened.index[0]:.2f} s, R2 {opened['r2'].iloc[0]:.3f}")
    print("in the paper: 50 rows at 3 Hz are full after 16 to 17 s, and R2 must exceed 0.95")


if __name__ == "__main__":
    main()
