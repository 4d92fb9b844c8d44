"""The ten inertial parameters of a body: their order and their forms as matrices.

A body's parameters are, in the order of [Sousa2014]_ eq. (13),

    ``Lxx Lxy Lxz Lyy Lyz Lzz lx ly lz m``

with L the rotational inertia about the body frame's *origin* in body axes [kg m^2] (matrix
entries, so ``Lxy = -integral of x y dm``), l = m c the first moment [kg m] and m the mass [kg].
Everything here is linear in them and works on stacks: shape (..., 10).

.. [Sousa2014] C. D. Sousa and R. Cortesao, Physical feasibility of robot base inertial parameter
   identification: a linear matrix inequality approach, IJRR 33(6), 2014.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array

SYMBOLS = ("Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m")
"""Names of the ten parameters, in order."""

UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)  #: Units of the ten parameters, in order.

UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Row and column of L for the first six parameters."""

# PINOCCHIO[k] is the position in our order of entry k of Pinocchio's
# (m, lx, ly, lz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz), Inertia.toDynamicParameters.
PINOCCHIO = np.array([9, 6, 7, 8, 0, 1, 3, 2, 4, 5])

# The same for (m, lx, ly, lz, Ixx, Iyy, Izz, Iyz, Ixz, Ixy) of Wensing, Niemeyer and Slotine.
RPNA = np.array([9, 6, 7, 8, 0, 3, 5, 4, 2, 1])


def skew(v: npt.ArrayLike) -> Array:
    """Matrix of the cross product: ``skew(a) @ b = a x b``; shape (..., 3) to (..., 3, 3).

    S of [Sousa2014]_ eq. (6).
    """
    v = np.asarray(v, dtype=np.float64)
    out = np.zeros((*v.shape, 3))
    out[..., 0, 1], out[..., 0, 2] = -v[..., 2], v[..., 1]
    out[..., 1, 0], out[..., 1, 2] = v[..., 2], -v[..., 0]
    out[..., 2, 0], out[..., 2, 1] = -v[..., 1], v[..., 0]
    return out


def rotational_inertia(delta: npt.ArrayLike) -> Array:
    """L, the inertia about the body frame's origin; shape (..., 10) to (..., 3, 3) [kg m^2]."""
    delta = np.asarray(delta, dtype=np.float64)
    return delta[..., [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(*delta.shape[:-1], 3, 3)


def spatial_inertia(delta: npt.ArrayLike) -> Array:
    """Spatial inertia, angular part first: [[L, S(l)], [S(l)', m 1]]; shape (..., 6, 6).

    It has the eigenvalues of D_k of [Sousa2014]_ eq. (17), which differs by the sign of l.
    """
    delta = np.asarray(delta, dtype=np.float64)
    out = np.zeros((*delta.shape[:-1], 6, 6))
    moment = skew(delta[..., 6:9])
    out[..., :3, :3] = rotational_inertia(delta)
    out[..., :3, 3:] = moment
    out[..., 3:, :3] = -moment
    out[..., 3:, 3:] = delta[..., 9, None, None] * np.eye(3)
    return out


def pseudo_inertia(delta: npt.ArrayLike) -> Array:
    """Pseudo-inertia [[tr(L)/2 1 - L, l], [l', m]]; shape (..., 10) to (..., 4, 4).

    It is the second-moment matrix of the mass distribution in homogeneous coordinates, so it is
    positive definite exactly for the inertia of some body with volume (Wensing, Kim and
    Slotine 2017, eq. (10)).
    """
    delta = np.asarray(delta, dtype=np.float64)
    out = np.empty((*delta.shape[:-1], 4, 4))
    half_trace = 0.5 * (delta[..., 0] + delta[..., 3] + delta[..., 5])
    out[..., :3, :3] = half_trace[..., None, None] * np.eye(3) - rotational_inertia(delta)
    out[..., :3, 3] = out[..., 3, :3] = delta[..., 6:9]
    out[..., 3, 3] = delta[..., 9]
    return out


def from_pseudo_inertia(pseudo: npt.ArrayLike) -> Array:
    """Parameters of a pseudo-inertia matrix, the inverse of `pseudo_inertia`; shape (..., 10)."""
    pseudo = np.asarray(pseudo, dtype=np.float64)
    sigma = pseudo[..., :3, :3]
    trace = np.trace(sigma, axis1=-2, axis2=-1)
    inertia = trace[..., None, None] * np.eye(3) - sigma
    return _stack_parameters(inertia, pseudo[..., :3, 3], pseudo[..., 3, 3])


def from_mass_com_inertia(mass: npt.ArrayLike, com: npt.ArrayLike, inertia: npt.ArrayLike) -> Array:
    """Parameters from mass, centre of mass and the inertia *about the centre of mass*.

    Shapes (...), (..., 3) and (..., 3, 3) to (..., 10), in the body's frame, by the parallel-axis
    theorem L = I + m S(c)' S(c), eq. (5) of [Sousa2014]_.
    """
    mass = np.asarray(mass, dtype=np.float64)
    com = np.asarray(com, dtype=np.float64)
    cross = skew(com)
    about_origin = np.asarray(inertia, dtype=np.float64) - mass[..., None, None] * cross @ cross
    return _stack_parameters(about_origin, mass[..., None] * com, mass)


def _stack_parameters(inertia: Array, first: Array, mass: Array) -> Array:
    """The ten from L (..., 3, 3), l (..., 3) and m (...)."""
    entries = [inertia[..., r, c] for r, c in UPPER]
    return np.stack([*entries, *np.moveaxis(first, -1, 0), mass], axis=-1)


def to_mass_com_inertia(delta: npt.ArrayLike) -> tuple[Array, Array, Array]:
    """Mass (...), centre of mass (..., 3) and inertia about it (..., 3, 3); mass must not be 0.

    By [Sousa2014]_ eq. (8), (10).
    """
    delta = np.asarray(delta, dtype=np.float64)
    mass = delta[..., 9]
    com = delta[..., 6:9] / mass[..., None]
    cross = skew(com)
    return mass, com, rotational_inertia(delta) + mass[..., None, None] * cross @ cross


def change_frame(rotation: npt.ArrayLike, position: npt.ArrayLike) -> Array:
    """Matrix B that re-expresses a body's parameters in another frame; shape (10, 10).

    ``delta_new = B @ delta_old``; `rotation` and `position` are the old frame's pose in the new one
    [m]. It is the congruence J_new = T J_old T' of the pseudo-inertia with the homogeneous
    transform T, the B of Wensing et al. (2024) eq. (39), (42).
    """
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = position
    basis = transform @ pseudo_inertia(np.eye(10)) @ transform.T
    return np.ascontiguousarray(from_pseudo_inertia(basis).T)
