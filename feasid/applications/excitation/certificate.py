"""Certificate of a motion: ranks, predicted standard deviations, and the limits that it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feasid.applications.excitation.constraint_check import Margin
from feasid.applications.excitation.problem import add_gain_columns
from feasid.core.arguments import as_numbers
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.threads import one_thread
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import regressor

if TYPE_CHECKING:
    import pandas as pd

RANK_TOLERANCE = 1e-10
"""Singular values of the column-scaled regressor below this share of the largest are zero."""

ACTIVE_MARGIN = 0.01  #: A limit is active if the margin is below this share of half its range.


@dataclass(frozen=True, eq=False)
class ExcitationCertificate:
    """Ranks, predicted deviations and margins, computed from the finished motion alone."""

    expressions: tuple[str, ...]  #: The base parameters.
    #: Effective rank of the motion's base regressor; the structural rank is their number.
    rank: int
    #: Of the base regressor of the motion in SI units, W in eq. (57) of Sousa and Cortesao (2014).
    condition_number: float
    log_det: float  #: Of W'W / s, s samples.
    #: Shape (nb,): predicted standard deviations of the base parameters, for white torque noise
    #: `noise` at every sample, with what was given and the prior; infinite for what stays unseen.
    deviations: Array
    #: Shape (dof,): of the predicted torque on the reference motion, root of the mean over its
    #: samples.
    torque_deviations: Array
    noise: Array  #: Shape (dof,): standard deviation of the torque noise [N m or N].
    rate: float  #: Samples per second [Hz].
    #: The smallest margin of every limit, at times far between those of the design.
    margins: tuple[Margin, ...]
    joints: tuple[str, ...]
    #: Shape (dof,): relative, of each servo's gain over the mean of all, for a design with
    #: ``"gains"``.
    gain_deviations: Array | None = None

    @property
    def is_full_rank(self) -> bool:
        """Whether the effective rank is the structural one."""
        return self.rank == len(self.expressions)

    @property
    def active_limits(self) -> dict[str, list[str]]:
        """The kinds of limits that each joint uses up; under "space" those of no single joint."""
        out: dict[str, list[str]] = {joint: [] for joint in self.joints}
        for margin in self.margins:
            if margin.slack < ACTIVE_MARGIN:
                key, what = margin.joint, margin.kind
                if key is None:
                    out.setdefault("space", []).append(margin.name)
                elif what not in out[key]:
                    out[key].append(what)
        return out

    @property
    def limits_hold(self) -> bool:
        """Whether all limits hold."""
        return all(margin.slack >= 0 for margin in self.margins)

    def table(self) -> pd.DataFrame:
        """Base parameters and their predicted standard deviations [SI]."""
        import pandas as pd

        return pd.DataFrame(
            {"deviation": self.deviations}, index=pd.Index(self.expressions, name="base parameter")
        )

    def summary(self) -> str:
        """The certificate on one screen."""
        size, worst = len(self.expressions), np.argsort(-self.deviations)[:3]
        unseen = "" if self.is_full_rank else "  SOME PARAMETERS STAY UNSEEN"
        lines = [
            f"rank {self.rank} of {size}{unseen}",
            f"condition number {self.condition_number:.1f}, log det {self.log_det:+.1f}",
            f"limits {'kept' if self.limits_hold else 'BROKEN'} between samples",
        ]
        for joint, kinds in self.active_limits.items():
            lines.append(f"  {joint}: {', '.join(kinds) or 'no limit active'}")
        lines.append(
            f"predicted standard errors for torque noise {self.noise.min():g} to "
            f"{self.noise.max():g} at {self.rate:g} Hz; largest:"
        )
        lines += [f"  {self.deviations[k]:.3g}  {self.expressions[k]}" for k in worst]
        torque = ", ".join(f"{v:.3g}" for v in self.torque_deviations)
        lines.append(f"predicted standard error of torques on the reference motion: {torque}")
        if self.gain_deviations is not None:
            shares = ", ".join(f"{100 * v:.2g} %" for v in self.gain_deviations)
            lines.append(f"predicted standard error of gain ratios: {shares}")
        return "\n".join(lines)


def weighted_regressor(
    robot: Robot, columns: Sequence[int], motion: Sequence[Array], weights: Array
) -> Array:
    """Weighted base regressor, equation by equation: shape (samples x dof, nb)."""
    w = regressor(robot, *motion, columns=columns) * weights[:, None]
    return np.asarray(w.reshape(-1, len(columns)))


@one_thread()
def certify_motion(
    robot: Robot,
    columns: Sequence[int],
    expressions: tuple[str, ...],
    motion: Sequence[Array],
    reference: Sequence[Array],
    *,
    noise: Array,
    rate: float,
    known: Array,
    margins: Sequence[Margin],
    expected: Array | None = None,
) -> ExcitationCertificate:
    """Certificate of a motion (q, dq, ddq), each (samples, dof), sampled at `rate`.

    ``known`` (m, nb) are rows of equations with unit noise that there are already; with `expected`
    base parameters, unknown gains have columns after theirs.
    """
    rows = regressor(robot, *motion, columns=columns)
    matrix, weighted = rows.reshape(-1, len(columns)), rows / noise[:, None]
    singular = np.linalg.svd(np.linalg.qr(matrix, mode="r"), compute_uv=False)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")
    with np.errstate(divide="ignore"):
        log_det = 2 * float(np.log(singular).sum()) - len(columns) * np.log(len(motion[0]))
    gains = None
    if expected is not None:
        extended = add_gain_columns(weighted, expected)
        root, *_ = _covariance_root(np.vstack([extended.reshape(-1, known.shape[1]), known]))
        ratios = root[len(columns) :] - root[len(columns) :].mean(axis=0)
        # The last row knows nothing but the gains' common factor.
        gains, known = np.linalg.norm(ratios, axis=1), known[:-1, : len(columns)]
    equations = np.vstack([weighted.reshape(matrix.shape), known])
    root, unseen, norms = _covariance_root(equations)
    lost = (unseen**2).sum(axis=1) > RANK_TOLERANCE
    deviations = np.where(lost, np.inf, np.linalg.norm(root, axis=1))
    task = regressor(robot, *reference, columns=columns)
    torque = np.sqrt(((task @ root) ** 2).sum(axis=2).mean(axis=0))
    # A torque may depend on parameters that are lost one by one, and not on what is not seen.
    task = task / norms
    blind = (task @ unseen) ** 2 > RANK_TOLERANCE * (np.abs(task) @ np.abs(unseen)) ** 2
    torque = np.where(blind.any(axis=(0, 2)), np.inf, torque)
    values = np.linalg.svd(_normalise_columns(matrix)[0], compute_uv=False)
    return ExcitationCertificate(
        expressions,
        int((values > RANK_TOLERANCE * values[0]).sum()),
        condition,
        float(log_det),
        deviations,
        np.asarray(torque),
        noise,
        rate,
        tuple(margins),
        robot.joints,
        gains,
    )


def _normalise_columns(equations: Array) -> tuple[Array, Array]:
    """Triangle of the equations with columns of unit norm, and the norms."""
    triangle = np.linalg.qr(equations, mode="r")
    norms = np.linalg.norm(triangle, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    return triangle / norms, norms


def _covariance_root(equations: Array) -> tuple[Array, Array, Array]:
    """S with S S' = (E'E)^-1 where determined; all other directions (nb, k) of parameters times
    norms; these norms of the equations' columns.
    """
    scaled, norms = _normalise_columns(equations)
    _, singular, right = np.linalg.svd(scaled)
    singular = np.pad(singular, (0, len(right) - len(singular)))  # fewer rows than columns
    significant = singular > RANK_TOLERANCE * singular[0]
    root = (right[significant].T / singular[significant]) / norms[:, None]
    return root, right[~significant].T, norms


def value_per_joint(value: object, robot: Robot, what: str) -> Array:
    """A positive number per joint from one number, an array or a mapping by joint."""
    out = np.ones(robot.dof)
    try:
        if isinstance(value, dict):
            for joint, entry in value.items():
                out[robot.joint_index(joint)] = as_numbers(entry)
        else:
            out = np.broadcast_to(as_numbers(value), (robot.dof,)).copy()
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be a number, {robot.dof} of them or a mapping") from error
    if not ((out > 1e-150) & (out < 1e150)).all():  # whose squares and inverses are numbers
        raise InputError(f"{what} must be positive, within 1e-150 and 1e150, got {out.tolist()}")
    return out
