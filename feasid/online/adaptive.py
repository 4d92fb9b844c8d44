"""Computed torque with the model that is identified meanwhile, through a gate, without bumps."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from feasid.control.computed_torque import ComputedTorque
from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.online.acceptance import OnlineEstimate
from feasid.online.online_fit import OnlineFit
from feasid.robot.description import Robot


class AdaptiveControl:
    """A controller that learns the robot that it moves, and never waits for what it learns.

    Torques are those of the nominal model until the gate of the online fit opens, and again when it
    closes. Models change along a straight line of base parameters, on which every model can exist
    when both ends can.

    Parameters
    ----------
    robot : Robot
        The nominal model.
    rate : float
        Samples per second [Hz].
    blend : float
        Time from one model to another [s].
    effort : array_like, shape (dof,), optional
        Largest torques; default the description's.
    backend : {"auto", "c", "python"}
        See `feasid.ComputedTorque`.
    worker : bool
        Whether a thread learns meanwhile, see `feasid.OnlineFit`. Without, `observe` and `decide`
        take the time that learning takes: for simulations, which are not in real time.
    **options
        Further ones of `feasid.OnlineFit`.

    Attributes
    ----------
    online : OnlineFit
    model : ComputedTorque
        Its ``beta`` are the parameters in use.
    """

    def __init__(
        self,
        robot: Robot,
        rate: float,
        *,
        blend: float = 0.5,
        effort: npt.ArrayLike | None = None,
        backend: Literal["auto", "c", "python"] = "auto",
        worker: bool = True,
        **options: Any,
    ) -> None:
        if not (np.isfinite(blend) and blend >= 0):
            raise InputError(f"blend must be a time in seconds, not {blend!r}")
        self.online = OnlineFit(robot, rate, worker=worker, **options)
        nominal = self.online.robot.with_values(self.online.problem.nominal)
        self.model = ComputedTorque(nominal, effort=effort, base=self.online.base, backend=backend)
        self._nominal = self.model.beta
        self._from, self._target = self._nominal, self._nominal
        self._done, self._step = 1.0, 1.0 / max(1.0, blend * rate)
        self._estimate: OnlineEstimate | None = None

    def observe(
        self,
        q: npt.ArrayLike,
        tau: npt.ArrayLike,
        dq: npt.ArrayLike | None = None,
        t: float | None = None,
    ) -> None:
        """Take one sample, as `OnlineFit.update` does, and move on to the model that is wanted."""
        self.online.update(q, tau, dq, t)
        self._follow_estimate()
        if self._done < 1.0:
            self._done = min(1.0, self._done + self._step)
            self.model.use(self._from + self._done * (self._target - self._from))

    def decide(self) -> OnlineEstimate | None:
        """Have a model estimated and judged; the controller changes over when it is ready.

        Returns
        -------
        OnlineEstimate or None
            The newest that is ready; None before the first.
        """
        self.online.request_estimate()
        self._follow_estimate()
        return self._estimate

    def _follow_estimate(self) -> None:
        """Want the newest verified model where the gate is open, else the nominal one."""
        estimate = self.online.latest
        if estimate is None or estimate is self._estimate:
            return
        self._estimate = estimate
        target = estimate.beta if estimate.decision.open else self._nominal
        if not np.array_equal(target, self._target):
            self._from, self._target, self._done = self.model.beta, target, 0.0

    @property
    def uses_identified_model(self) -> bool:
        """Whether the controller uses the identified model or is changing over to it."""
        return self._estimate is not None and self._estimate.decision.open

    def close(self) -> None:
        """End the thread that learns; see `feasid.OnlineFit.close`."""
        self.online.close()

    def torque(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """Torques for a commanded acceleration; see `ComputedTorque.torque`."""
        return self.model.torque(q, dq, ddq)
