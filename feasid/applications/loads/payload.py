"""A tool or load on a robot, from logs with and without it, or from a wrist sensor.

Base parameters are linear in the standard ones, ``beta = K delta``, so a load delta_L that is fixed
to a body adds ``K_L delta_L``, K_L the body's ten columns of K (Khalil, Gautier and Lemoine 2007,
"Identification of the payload inertial parameters of industrial manipulators", ICRA). Both logs
share the robot's own beta:

    minimise |R beta - rho|^2 + |R' (beta + K_L delta_L) - rho'|^2   over beta and delta_L,

in units of the noise, where delta_L is a consistent body: its pseudo-inertia is positive definite
(Wensing, Kim and Slotine 2017). Eliminating beta leaves a triangle of ten columns.

A load behind a wrist force-torque sensor: `feasid.applications.loads.wrist`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Unpack

import numpy as np

from feasid.applications.loads import controllers
from feasid.core.arguments import array, checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError, UselessFitError, name_input
from feasid.core.notes import Note, as_notes
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.estimation import noise
from feasid.identification.estimation.torque_scale import scale_note
from feasid.identification.prediction import reduce_as_fitted
from feasid.identification.regression.reduce import Log, open_sources
from feasid.identification.regression.triangle import Reduced
from feasid.options.complete import check_options, document_options
from feasid.options.tables import LoadOptions
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import FeasibleFit, feasible_least_squares
from feasid.parameters.identifiability.base import base_parameters, load_columns
from feasid.results.fit import Fit, fit
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import resolve_robot
from feasid.robot.inertia import change_frame, to_mass_com_inertia
from feasid.robot.layout import find_link

SURE = 3.0  #: A mass that is negative by so many of its standard deviations is rejected.

NO_TORQUES = ("currents", "scale")  #: Codes of notes on logs whose torques are currents or no N m.

SEEN = 1e-8  #: Singular values of the load's scaled columns below this share are not seen.

UNSEEN, UNKNOWN = 1e16, 1e2
"""Variance of directions that are not seen, in units of their columns' sizes, and the deviation
[kg, m, kg m^2] from which a number counts as not determined."""

STEP = 1e-6  #: Relative step of differences by which deviations of centre and inertia follow.

KNOWN_INERTIA = 0.5
"""Deviation of a moment of inertia over the largest one, from which it is not determined."""

WATER = 1000.0
"""Density of the ball whose inertia a controller gets where the log shows none [kg/m^3]."""

UNLIKE, SMALL_ERROR = 2.0, 0.01
"""Factor on the error of the log without the load, and more of the torque, beyond which the log
with it differs in something else; with one motion logged twice the errors are alike."""

ERROR_UNITS = {
    "rotation": (180 / np.pi, "degrees"),
    "delay": (1e3, "ms"),
    "gain": (100.0, "%"),
    "tilt": (180 / np.pi, "degrees"),
    "zero": (1e3, "mrad or mm"),
}
"""Units in which errors of a wrist sensor and its arm are printed, over SI units."""

WRITTEN = (
    *("body", "mass", "centre", "inertia", "mass_std", "centre_std", "inertia_std", "residual"),
    *("level", "reasons"),
)
"""Attributes of a load that its file has, besides its wrist sensor."""


@checked_methods
@dataclass(frozen=True, eq=False)
class WristSensor:
    """What of a wrist sensor and its arm differs from what is known, by kinds of error."""

    corrected: tuple[str, ...]  #: Kinds that the log shows; the values of others are zero.
    #: ``rotation``: rotation vector from the given axes, in these [rad]; ``delay`` of the channels
    #: after the joints [s]; ``gain``: what each channel shows of one unit, less one; ``tilt``:
    #: rotation vector of gravity in the base [rad]; ``zero``: to add to the joints' positions.
    values: Mapping[str, Array]
    #: Standard deviations of `values`, with that of a gain which all channels share.
    deviations: Mapping[str, Array]
    rotation: Annotated[Array, array(3, 3)]  #: The sensor's axes in the frame of the body.
    offsets: Annotated[Array, array(6)]  #: What the channels show of no load [N, N m].

    @property
    def texts(self) -> dict[str, str]:
        """What is said of each kind: values and the largest standard deviation, with their unit."""
        texts = {}
        for kind, (factor, unit) in ERROR_UNITS.items():
            values = ", ".join(f"{factor * x:.2f}" for x in self.values[kind])
            texts[kind] = f"{kind} {values} {unit} (+- {factor * self.deviations[kind].max():.1g})"
        return texts

    def __repr__(self) -> str:
        return "; ".join(self.texts[kind] for kind in self.corrected) or "as it was given"


@checked_methods
@dataclass(frozen=True, eq=False)
class Payload:
    """A physically consistent load, fixed to a body of a robot."""

    body: str  #: The body or link that carries it; all vectors are in its frame.
    mass: float  #: [kg]
    mass_std: float  #: See `mass`.
    centre: Annotated[Array, array(3)]  #: Centre of mass [m].
    centre_std: Annotated[Array, array(3, finite=False)]  #: See `centre`.
    inertia: Annotated[Array, array(3, 3)]  #: About the centre of mass [kg m^2].
    #: Standard deviations of its entries; infinite where the motion does not show them.
    inertia_std: Annotated[Array, array(3, 3, finite=False)]
    #: lxx .. Lzz, lx, ly, lz, m about the body frame's origin.
    parameters: Annotated[Array, array(10)]
    #: Relative torque error on the log with the load: without the load in the model, and with it.
    residual: tuple[float, float]
    verified: str  #: Conditions that were checked in exact arithmetic.
    notes: tuple[Note, ...] = ()  #: Assumptions and warnings.
    #: "good", "doubtful" or "useless": that of the fit of the log without the load, lowered where
    #: the log with the load contradicts it.
    level: str = "good"
    reasons: tuple[str, ...] = ()  #: Why it is not good, the gravest first.
    sensor: WristSensor | None = None  #: What the log shows of a wrist sensor; None without one.

    def on(self, robot: Robot) -> Robot:
        """The robot that carries the load.

        Parameters
        ----------
        robot : Robot
            With a body or link of this name.

        Returns
        -------
        Robot

        Raises
        ------
        InputError
            The robot has no such body, or the description gives this body no inertial parameters.
        """
        k, link = find_link(robot, self.body)
        body = robot.bodies[k]
        if body.inertial is None:
            raise InputError(f"the description gives body {body.name!r} no inertial to add to")
        added = change_frame(link.rotation, link.position) @ self.parameters
        heavy = replace(body, inertial=body.inertial + added)
        return replace(robot, bodies=(*robot.bodies[:k], heavy, *robot.bodies[k + 1 :]))

    @property
    def shows_inertia(self) -> bool:
        """Whether the log determines the inertia: to half of its largest moment."""
        largest = float(np.linalg.eigvalsh(self.inertia)[-1])
        return bool(np.diag(self.inertia_std).max() < KNOWN_INERTIA * largest)

    def to(self, maker: str, *, force: bool = False) -> controllers.ControllerPayload:
        """The load in the form, order and units of a robot maker, in the frame of `body`.

        Parameters
        ----------
        maker : {"franka", "ur", "kuka", "kinova", "ros2"}
            Conventions and their sources: `feasid.applications.loads.controllers`. All makers use
            the frame of the flange, so identify the load with ``body=`` set to the link of the
            flange.
        force : bool
            Also for a load whose `level` is not "good".

        Returns
        -------
        ControllerPayload
            Text to paste, values to send, and what the maker's model leaves out. Where the log
            does not determine the inertia, it is that of a ball of water of this mass, and a note
            says so.

        Raises
        ------
        InputError
            The maker is unknown, the load exceeds the limits of its interface, or the torques were
            currents or a multiple of the description's, so that the mass is wrong.
        UselessFitError
            The load is doubtful or useless, with the reason, and `force` is False.
        """
        controllers.require_maker(maker)
        note = next((n for code in NO_TORQUES for n in self.notes if n.code == code), None)
        if note is not None:
            raise InputError(f"this load cannot be given to a controller: {note}", code=note.code)
        if self.level != "good" and not force:
            raise UselessFitError(
                f"this load is {self.level}: {self.reasons[0]} It is not given to a controller: "
                "fix the log or the description, or ask for it nevertheless with force=True"
            )
        inertia, notes = self.inertia, list[str]()
        if not self.shows_inertia:
            # Of a homogeneous ball, 2/5 m r^2.
            radius = (self.mass / (4 / 3 * np.pi * WATER)) ** (1 / 3)
            inertia = 0.4 * self.mass * radius**2 * np.eye(3)
            notes = ["The log does not determine the inertia: it is that of a ball of water."]
        load = controllers.Load(self.body, self.mass, self.centre, inertia)
        text, values, remarks = controllers.CONVENTIONS[maker](load)
        frame = (
            f"In the frame of {self.body!r}, which must be the robot's flange: name it with body= "
            "when you identify the load, if it is not."
        )
        notes = [*notes, frame, *remarks, controllers.NOT_COMPENSATED]
        return controllers.ControllerPayload(maker, text, MappingProxyType(values), tuple(notes))

    def __repr__(self) -> str:
        centre = ", ".join(f"{x:.4f}" for x in self.centre)
        spread = ", ".join(f"{x:.4f}" for x in self.centre_std)
        moments, deviations = (
            ", ".join(f"{x:.3g}" for x in np.diag(m)) for m in (self.inertia, self.inertia_std)
        )
        known = f"{moments} kg m^2, +- ({deviations})"
        inertia = known if self.shows_inertia else "not determined by this log"
        before, after = (f"{100 * r:.2f} %" for r in self.residual)
        share = 1.0 - (self.residual[1] / max(self.residual[0], 1e-300)) ** 2
        warnings = [*self.reasons, *(n for n in self.notes if n.code in NO_TORQUES)]
        return (
            f"load at {self.body!r}: {self.mass:.4g} kg (+- {self.mass_std:.2g}), {self.level}\n  "
            f"centre of mass  ({centre}) m, +- ({spread})\n  Ixx, Iyy, Izz about it  {inertia}\n  "
            f"error of the loaded log  {before} without the load, {after} with it: the load "
            f"explains {100 * share:.0f} %\n  "
            + (f"the sensor  {self.sensor}\n  " if self.sensor is not None else "")
            + "".join([self.verified, *(f"\n!! {text}" for text in warnings)])
        )


def payload_of_fit(
    body: str, fit: FeasibleFit, covariance: Array, residual: tuple[float, float]
) -> Payload:
    """The load of ten fitted parameters, with the covariance of their least squares (10, 10)."""
    mass, centre, inertia = to_mass_com_inertia(fit.delta)
    # Derivatives by differences; a parameter that is zero is moved by a share of the mass.
    steps = STEP * np.maximum(np.abs(fit.delta), STEP * mass)
    pairs = [[to_mass_com_inertia(fit.delta + s) for s in (e, -e)] for e in np.diag(steps)]
    slopes = [[(a - b) / (2 * h) for a, b in zip(*pair, strict=True)]
              for pair, h in zip(pairs, steps, strict=True)]  # fmt: skip
    # Infinite where nothing shows a number.
    mass_std, centre_std, inertia_std = (
        np.where(x < UNKNOWN, x, np.inf)
        for s in map(np.array, zip(*slopes, strict=True))
        for x in [np.sqrt(np.einsum("i...,ij,j...->...", s, covariance, s))]
    )
    tensors = centre, centre_std, inertia, inertia_std
    return Payload(body, float(mass), float(mass_std), *tensors, fit.delta, residual, fit.verified)


@checked
@document_options(LoadOptions)
@one_thread()
@step("identifying the load")
def payload(
    loaded: Log | Reduced | Sequence[Log | Reduced],
    unloaded: Log | Reduced | Sequence[Log | Reduced] | Fit,
    robot: Robot | str | Path | None = None,
    *,
    body: str | None = None,
    **options: Unpack[LoadOptions],
) -> Payload:
    """Identify a tool or load from a log with the load and a log without it.

    The robot is fitted to the log without the load, and the log with the load is read with the
    friction terms, delay, joint zeros and torque gains of this fit. Best log the same motion twice,
    because errors of the friction model then cancel.

    Parameters
    ----------
    loaded : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
    unloaded : the same, or Fit
        The log without the load, or a fit of it; `robot` and `options` are then those of the fit.
    robot : Robot or path, optional
        The robot without the load. Default ``loaded.attrs["robot"]``.
    body : str, optional
        The body or link that carries the load; the result is in its frame. Default the last body.
        A link that is fixed to a body, such as a flange, may be named.
    **options
        How the logs are read and reduced, alike for both.

    Returns
    -------
    Payload

    Raises
    ------
    InputError
        No body has this name, or the load has a negative mass, which happens if the logs are
        exchanged.
    SolverError
        No solution passed verification.
    """
    check_options(LoadOptions, options, "payload")
    if not isinstance(unloaded, Fit):
        described = resolve_robot(loaded, robot)
        with name_input("unloaded"):
            without = fit(unloaded, described, **options)
    elif doubles := [*options, *(["robot"] if robot is not None else [])]:
        raise InputError(f"{doubles[0]} is already set by the fit: leave it out", option=doubles[0])
    else:
        without = unloaded
    with name_input("loaded"):
        parts = [reduce_as_fitted(without, source) for source in open_sources(loaded)]
    base, reduced = without.base, sum(parts[1:], parts[0])
    try:
        name, added = load_columns(base, body)
        r, rho, beta_of = _eliminate_robot_parameters(reduced, without.reduced, added)
        covariance, inverse = least_squares_covariance(r)
        refuse_negative_mass(inverse[9] @ rho, covariance[9, 9], name, "are the logs exchanged?")
        solution = fit_feasible_body(r, rho)
        beta = beta_of(solution.delta)
        size = float(np.linalg.norm(reduced.torque_norms))
        models = beta, beta + added @ solution.delta
        before, after = (float(np.linalg.norm(reduced.residuals(x))) / size for x in models)
        load = payload_of_fit(name, solution, covariance, (before, after))
    except InputError as refusal:
        if "mass" not in refusal.data or without.quality.level == "good":
            raise
        why = " ".join(map(str, without.quality.reasons))
        text = f"{refusal} The fit without the load is {without.quality.level}: {why}"
        raise InputError(text, **refusal.data) from refusal
    # A log without the load hardly shows a wrist's zero, about which the load is turned.
    zeros = [e.deviation for e in without.calibration.confirmed if e.at.kind == "zero"]
    spread = np.hypot(load.centre_std, np.linalg.norm(zeros) * np.linalg.norm(load.centre))
    scale = scale_note(without.reduced, base, without.options["units"])
    notes = [n for n in (*without.notes, *reduced.notes) if n.code != "scale"]
    level, reasons = without.quality.level, [str(r) for r in without.quality.reasons]
    error = float(without.relative_error["all"])
    doubts = [str(n) for n in reduced.notes if n.code == "no-temperature"]
    if load.residual[1] > UNLIKE * error + SMALL_ERROR:
        doubts.append(
            f"The log with the load is missed by {100 * load.residual[1]:.2g} %, that without it "
            f"by {100 * error:.2g} %: something else than the load differs between them."
        )
    level = "doubtful" if doubts and level == "good" else level
    every = as_notes([*([scale] if scale else []), *notes])
    return replace(load, centre_std=spread, notes=every, level=level, reasons=(*reasons, *doubts))


def refuse_negative_mass(mass: float, variance: float, body: str, hint: str) -> None:
    """Refuse a mass that is clearly negative."""
    if mass < -SURE * np.sqrt(variance):
        raise InputError(
            f"what was added at {body!r} has a mass of {mass:.3g} kg (+- {np.sqrt(variance):.2g}), "
            f"which no load has: {hint}",
            body=body,
            mass=mass,
        )


def _eliminate_robot_parameters(
    loaded: Reduced, unloaded: Reduced, added: Array
) -> tuple[Array, Array, Callable[[Array], Array]]:
    """Triangle of the load's ten columns with beta eliminated; beta for a load."""
    first, second = (noise.estimate_noise(x)[0].whitened_triangle(x) for x in (unloaded, loaded))
    size = added.shape[0]
    norms = np.linalg.norm(np.vstack([first[0], second[0]]), axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    above = np.c_[first[0] / scale, np.zeros((size, 10)), first[1]]
    below = np.c_[second[0] / scale, second[0] @ added, second[1]]
    triangle = np.asarray(np.linalg.qr(np.vstack([above, below]), mode="r"))
    of_robot, coupling, right = np.split(triangle[:size], [size, -1], axis=1)

    def beta(load: Array) -> Array:
        rho = right[:, 0] - coupling @ load
        return np.asarray(np.linalg.lstsq(of_robot, rho, rcond=1e-10)[0] / scale)

    return triangle[size : size + 10, size:-1], triangle[size : size + 10, -1], beta


def least_squares_covariance(r: Array) -> tuple[Array, Array]:
    """Covariance of parameters (n, n), and their least squares per unit of the rows (n, rows).

    Directions that the rows do not see have a variance of `UNSEEN`, and no estimate.
    """
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    U, singular, V = np.linalg.svd(r / scale)
    rank = int(np.sum(singular > SEEN * max(float(singular[0]), 1e-300)))
    inverse, unseen = V[:rank].T / singular[:rank], V[rank:].T
    covariance = (inverse @ inverse.T + UNSEEN * unseen @ unseen.T) / np.outer(scale, scale)
    return covariance, inverse @ U[:, :rank].T / scale[:, None]


def fit_feasible_body(r: Array, rho: Array) -> FeasibleFit:
    """The possible body with the least ``|r delta - rho|``, verified in exact arithmetic."""
    robot = Robot((Body("load", None, motion=np.eye(6)),), name="load")
    return feasible_least_squares(r, rho, base_parameters(robot), feasible_set(robot))
