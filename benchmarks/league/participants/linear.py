"""Textbook baselines: weighted least squares, with signs or without, or fitted joint terms.

Regressor and torque pass one filter and are thinned alike (both sides), as Gautier (1997) does.
"""

import numpy as np
from entry import PER_JOINT, LinearModel, low_pass, of_arguments
from scipy.optimize import lsq_linear

CUTOFF = 8.0
"""Hz; rows are thinned to five times this."""
REGRESSOR_RATE = 250.0
"""Rows per second [Hz] at which the regressor of the smooth motion is formed."""


def equations(task, model):
    """Filtered rows (N, joints, parameters) and torques (N, joints)."""
    sides = []
    for rate, q, dq, ddq, tau in task.stretches():
        every = max(1, round(rate / REGRESSOR_RATE))
        block = model.regressor(q[::every], dq[::every], ddq[::every])
        filtered = (low_pass(block, CUTOFF, rate / every), low_pass(tau, CUTOFF, rate)[::every])
        rate /= every
        kept = slice(int(0.1 * rate), -int(0.1 * rate), max(1, round(rate / (5 * CUTOFF))))
        sides.append([x[kept] for x in filtered])
    return tuple(np.concatenate(x) for x in zip(*sides, strict=True))


def weighted(rows, torque, start):
    """Weighted least squares, free directions as in the description; and the covariance."""
    n, size = torque.shape[1], rows.shape[2]
    rest = torque - rows @ start
    deviation, x = np.ones(n), np.zeros(size)
    for _ in range(3):
        W, y = (rows / deviation[:, None]).reshape(-1, size), (rest / deviation).ravel()
        scale = np.linalg.norm(W, axis=0) + 1e-12
        U, s, Vt = np.linalg.svd(W / scale, full_matrices=False)
        seen = s > 1e-7 * s[0]
        x = Vt[seen].T @ (U[:, seen].T @ y / s[seen]) / scale
        freedom = len(rest) - seen.sum() / n
        deviation = np.sqrt(((rest - rows @ x) ** 2).sum(axis=0) / freedom)
    root = Vt[seen].T / s[seen] / scale[:, None]
    return start + x, root @ root.T


def weighted_with_signs(rows, torque, start):
    """Weighted least squares with drive inertia, friction and masses that are not negative.

    A pull of a millionth of each column's norm holds directions that nothing shows.
    """
    size = rows.shape[2]
    signed = np.arange(size) % PER_JOINT
    least = np.where(np.isin(signed, [0, 10, 11, 12]), 0.0, -np.inf)
    x, _ = weighted(rows, torque, start)
    for _ in range(2):
        deviation = np.sqrt(((torque - rows @ x) ** 2).mean(axis=0))
        W, y = (rows / deviation[:, None]).reshape(-1, size), (torque / deviation).ravel()
        R = np.linalg.qr(np.c_[W, y], mode="r")  # the same problem in few rows
        norm = np.linalg.norm(W, axis=0) + 1e-12
        pull = np.diag(1e-6 * norm)
        A, b = np.vstack([R[:, :-1], pull]) / norm, np.r_[R[:, -1], pull @ start]
        x = lsq_linear(A, b, (least * norm, np.inf)).x / norm
    return x, None


def joint_terms_only(rows, torque, start):
    """Drive inertia and friction, not negative, and offset of each joint."""
    x = start.copy()
    for k, rest in enumerate((torque - rows @ start).T):
        own = slice(PER_JOINT * k + 10, PER_JOINT * (k + 1))
        bounds = ([0, 0, 0, -np.inf], np.inf)
        x[own] = lsq_linear(rows[:, k, own], rest, bounds).x
    return x, None


def main():
    """Answer the task by the variant ``wls``, ``signs`` or ``description``."""
    task, variant = of_arguments()
    model = LinearModel(task)
    rows, torque = equations(task, model)
    fits = {"wls": weighted, "signs": weighted_with_signs, "description": joint_terms_only}
    x, covariance = fits[variant](rows, torque, model.described())
    others = {} if covariance is None else {"covariance": covariance.tolist()}
    task.answer(model.predict(task, x), x, **others)


if __name__ == "__main__":
    main()
