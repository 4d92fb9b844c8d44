"""Signals of a running robot, converted as the log of a fit was.

A fit's corrections of its log (units, signs, torque gains, a common delay) also apply to later
samples of the same sensors. Corrections that cannot be made sample by sample raise an error that
names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.logs.units import unit_factor

KINDS = ("q", "dq", "tau")  #: Signals of a sample, in the order in which consumers take them.
NOT_LIVE = ("joint-delay",)  #: Corrections that no consumer of single samples can make.


@dataclass(frozen=True, eq=False)
class LiveSignals:
    """Factors and delay of the samples that a fit's sensors deliver."""

    joints: tuple[str, ...]
    factors: Mapping[str, Array]  #: to SI and to the model's torques, by kind, (dof,) each
    zeros: Array  #: added to positions, (dof,) [rad or m]
    delay: float  #: by which torques are behind the motion [s]

    @classmethod
    def from_fit(cls, fit: Any, delay: float | None = None) -> LiveSignals:
        """The conversion of a fit's log; `delay` [s] replaces that of the fit.

        Raises InputError: the fit has corrections that cannot be made sample by sample, or it read
        commands.
        """
        wrong = [e for e in fit.calibration.confirmed if e.at.kind in NOT_LIVE]
        if wrong:
            names = ", ".join(e.joint for e in wrong)
            raise InputError(
                f"the torques of {names} have delays of their own in the fitted log, which cannot "
                "be corrected sample by sample: align them in the controller, and fit its log",
                joints=tuple(e.joint for e in wrong),
            )
        if fit.servo is not None:
            raise InputError(
                "the fit took torques from commands; an observer needs measured torques: fit a "
                "log that has them"
            )
        if fit.log_options.get("transmission") is not None:
            raise InputError(
                "the fitted log is of motors (transmission=): an observer takes signals of joints; "
                "fit a log of joints"
            )
        units, joints = fit.log_options.get("units"), fit.robot.coordinates
        offsets = fit.log_options.get("offsets") or {}
        zeros = np.array([float(offsets.get(j, 0.0)) for j in joints])
        factors = {k: np.array([unit_factor(units, k, j) for j in joints]) for k in KINDS}
        bare = any(n.code == "velocities" and not n.values.get("measured", True) for n in fit.notes)
        if bare and not any(str(key).startswith("dq") for key in units or {}):
            # The log has no velocities: a controller has those of its positions, per second.
            factors["dq"] = factors["q"]
        return cls(tuple(joints), factors, zeros, fit.delay if delay is None else delay)

    def read(self, *signals: Any) -> list[Array]:
        """A sample q, dq, tau as the model has it, shape (dof,) each.

        Raises InputError: a signal has another shape, or a number of a joint is not finite.
        """
        arrays = []
        for name, values in zip(KINDS, signals, strict=True):
            array = np.asarray(values, dtype=np.float64)
            if array.shape != (len(self.joints),):
                raise InputError(f"{name} has shape {array.shape}, needed is ({len(self.joints)},)")
            if not np.isfinite(array).all():
                joint = self.joints[int(np.argmin(np.isfinite(array)))]
                raise InputError(f"{name} of joint {joint} is not finite", joint=joint)
            arrays.append(array * self.factors[name])
        arrays[0] = arrays[0] + self.zeros
        return arrays

    def require_plain(self, consumer: str) -> None:
        """Raise InputError where a consumer takes SI units and the model's torques only."""
        listed = [f"{k}_{j}: {factor:.6g}" for k in KINDS
                  for j, factor in zip(self.joints, self.factors[k], strict=True)
                  if factor != 1.0]  # fmt: skip
        if listed or self.zeros.any():
            raise InputError(
                f"{consumer} takes rad or m, per s, and N m or N of the model, but the fitted log "
                f"is converted by factors ({', '.join(listed) or 'offsets of positions'}): "
                "multiply signals by them before the call, and fit a log that is converted already"
            )
