"""Robots drawn from the posterior of a log, or around a description without a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, overload

import numpy as np
from scipy.spatial.transform import Rotation

from feasid.core.arguments import Count, Natural, array, checked, checked_methods, number
from feasid.core.arrays import Array
from feasid.core.errors import InputError, OutputError
from feasid.core.files import check_writable
from feasid.core.progress import step
from feasid.core.text import quote
from feasid.identification.uncertainty.posterior import verify_draws
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import usable_inertials
from feasid.results.export.file_terms import (
    friction_as_files_hold,
    joint_values,
    servo_damping,
    servos_to_write,
)
from feasid.robot.description import Robot
from feasid.robot.formats.description import Extras
from feasid.robot.formats.write import format_of, representable_part, write
from feasid.robot.inertia import from_pseudo_inertia, pseudo_inertia, to_mass_com_inertia
from feasid.robot.joint_terms import TERMS

if TYPE_CHECKING:
    from feasid.identification.fitted import FittedModel
    from feasid.identification.uncertainty.ranges import ResidualRegion
    from feasid.logs.servo import Servo

WIDEST = 0.7
"""Largest relative deviation of masses: a Wishart density of a body has four degrees of freedom."""

NARROWEST, FARTHEST = 1e-9, 1e3
"""Relative deviation of masses below which they are not drawn; largest deviation of a shift [m]."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Samples(Sequence[Robot]):
    """A sequence of randomly drawn robots."""

    robot: Robot  #: The robot around which the samples were drawn.
    #: Standard parameters in the order of ``robot.names``; each row was verified
    #: in exact arithmetic to be feasible.
    parameters: Annotated[Array, array("draws", "parameters")]
    acceptance: float  #: Share of proposals that were accepted; 1 for independent draws.
    #: How many independent draws the rows are worth, per parameter; NaN where one is
    #: fixed.
    effective: Annotated[Array, array("parameters", finite=False)]
    #: The equations of the log by which friction is simplified for files; see `write`.
    residual: ResidualRegion | None = None
    #: A servo for each draw, of fits from commands, which files of formats with actuators hold.
    servos: tuple[Servo, ...] = ()

    def __len__(self) -> int:
        return len(self.parameters)

    @overload
    def __getitem__(self, place: int) -> Robot: ...

    @overload
    def __getitem__(self, place: slice) -> Samples: ...

    def __getitem__(self, place: int | slice) -> Robot | Samples:
        if isinstance(place, slice):
            part = self.parameters[place]
            worth = self.effective * (len(part) / max(len(self), 1))
            return replace(self, parameters=part, servos=self.servos[place], effective=worth)
        return self.robot.with_values(self.parameters[place])

    @property
    def least_effective(self) -> float:
        """Effective number of independent draws, of the parameter with the fewest."""
        return float(np.nanmin(self.effective, initial=len(self)))

    def __repr__(self) -> str:
        return (
            f"{len(self)} robots drawn around {self.robot.name!r}, each verified to be feasible: "
            f"worth {self.least_effective:.0f} independent draws or more, acceptance "
            f"{self.acceptance:.2f}"
        )

    def _file_values(self, place: int, shared: bool) -> Array:
        """Parameters with viscous and Coulomb friction in place of laws that simulators lack."""
        one = self[place]
        if self.residual is None:
            return one.values
        return friction_as_files_hold(one, self.residual.equations, shared)

    def write(
        self, folder: str | Path, pattern: str = "robot_{:03}.xml", *, overwrite: bool = False
    ) -> list[str]:
        """Write each robot to its own file.

        Files hold what their format holds, see `feasid.Fit.write`: MJCF has armature, damping and
        frictionloss, URDF no armature. Friction of other laws is replaced by viscous and Coulomb
        friction; offsets are left out. There are no sidecars.

        Parameters
        ----------
        folder : path
            Created if it does not exist.
        pattern : str
            File name with one place for a number, such as ``"arm_{:03}.xml"``; the suffix selects
            the format.
        overwrite : bool

        Returns
        -------
        list of str
            The paths.

        Raises
        ------
        InputError
            The pattern gives two robots the same name, or the format's actuators cannot hold the
            servos.
        OutputError
            A file exists and `overwrite` is False, or it cannot be written.
        """
        try:
            names = [pattern.format(k) for k in range(len(self))]
        except (IndexError, KeyError, ValueError):
            # Equal names: refused below with the same words.
            names = [""] * 2
        if len(set(names)) < len(names):
            text = f"pattern {pattern!r} needs one place for a number, such as 'arm_{{:03}}.xml'"
            raise InputError(f"{text}: each robot has a name of its own")
        paths = [Path(folder, name) for name in names]
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise OutputError(f"{quote(folder)} cannot be a folder: {error}") from error
        for path in paths:
            check_writable(path, overwrite=overwrite)
        for k, path in enumerate(paths):
            form = format_of(self.robot, path)
            robot = self.robot.with_values(self._file_values(k, form.holds_shared))
            servos = servos_to_write(robot, self.servos[k] if self.servos else None, path)
            robot = robot.with_values(robot.values - servo_damping(robot, servos))
            part = representable_part(robot, form)
            write(part, path, overwrite=overwrite, extras=Extras(servos=servos))
        return [str(path) for path in paths]

    def arrays(self) -> dict[str, Array]:
        """The robots as arrays with MuJoCo's names of model fields, for batched simulators.

        Returns
        -------
        dict of str to ndarray
            N is the number of draws, B that of the bodies in ``robot.bodies`` that have mass (with
            the links fixed to them), and J that of ``robot.joints``:

            - ``body_mass`` (N, B) [kg]; ``body_ipos`` (N, B, 3) centre of mass in the body's
              frame [m];
            - ``body_inertia`` (N, B, 3) principal moments, descending [kg m^2], in axes that
              ``body_iquat`` (N, B, 4) turns into the body's, w x y z;
            - ``inertia`` (N, B, 3, 3) the same about the centre of mass in the body's axes, as
              Isaac Lab's ``set_inertias`` takes it with its rows one after the other;
            - ``dof_armature``, ``dof_damping``, ``dof_frictionloss`` (N, J) drive inertia
              [kg m^2 or kg], viscous [N m s/rad or N s/m] and Coulomb friction [N m or N];
            - of fits from commands ``kp`` (N, J) [N m/rad or N/m] and ``delay`` (N,) [s].

            MJX and mjlab take the names as they are; Isaac Lab names masses ``masses``, centres
            ``coms`` (followed by a quaternion x y z w), armature ``armature``.
        """
        heavy = [i for i, body in enumerate(self.robot.bodies) if not body.massless]
        ten = self.parameters[:, self.robot.inertial_columns[heavy]]
        mass, com, inertia = to_mass_com_inertia(ten)
        moments, axes = np.linalg.eigh(inertia)
        moments, axes = moments[..., ::-1], axes[..., ::-1]
        # A quaternion turns into right-handed axes only; SciPy has its real part last.
        axes[..., 0] *= np.sign(np.linalg.det(axes))[..., None]
        quaternion = Rotation.from_matrix(axes.reshape(-1, 3, 3)).as_quat()[:, [3, 0, 1, 2]]
        shared = bool(self.robot.elastic)  # tables of joints have no other drives along several
        terms = [joint_values(self.robot, self._file_values(k, shared)) for k in range(len(self))]
        fields = {"dof_armature": "Ia", "dof_damping": "fv", "dof_frictionloss": "fc"}
        servos = {"kp": [s.kp for s in self.servos], "delay": [s.delay for s in self.servos]}
        return {
            "body_mass": mass,
            "body_ipos": com,
            "body_inertia": moments,
            "body_iquat": quaternion.reshape(*mass.shape, 4),
            "inertia": inertia,
            **{name: np.array([t[symbol] for t in terms]) for name, symbol in fields.items()},
            **{name: np.array(values) for name, values in servos.items() if values},
        }


@step("drawing robots")
def sample_posterior(fit: FittedModel, count: int, seed: int, scale: float) -> Samples:
    """Draw robots from what a log leaves open; see `feasid.Fit.sample`."""
    posterior = fit.posterior
    if posterior is None:
        raise InputError(
            "the fit has no covariance of what the log leaves open: it had no prior, or had "
            "constraints that are not affine"
        )
    drawn, acceptance, effective = posterior.draw(count, seed, scale)
    if fit.servo is None:
        return Samples(fit.robot, drawn, acceptance, effective, fit.residual)
    # Torques are gains times errors: bodies follow the gains' common factor, drives their own.
    robot, servos = fit.robot, fit.servo.draw(count, np.random.default_rng([seed, 1]), scale)
    factors = np.array([s.kp for s in servos]) / fit.servo.servo.kp
    share = np.repeat(np.exp(np.log(factors).mean(axis=1, keepdims=True)), robot.size, axis=1)
    for k, drive in enumerate(robot.drives):
        place = fit.servo.servo.joints.index(next(iter(drive.coupling)))
        share[:, [*robot.drive_columns(k).values()]] = factors[:, [place]]
    drawn = verify_draws(feasible_set(robot), drawn * share)
    return Samples(robot, drawn, acceptance, effective, fit.residual, servos)


@checked
def sample(
    robot: Robot,
    count: Natural,
    *,
    mass: Annotated[float, number(0.0, WIDEST)] = 0.1,
    density: Annotated[float, number(0.0, 10.0)] = 0.0,
    centre: Annotated[float, number(0.0, FARTHEST)] = 0.0,
    joint_terms: Annotated[float, number(0.0, 10.0)] = 0.0,
    seed: Count = 0,
) -> Samples:
    """Draw robots around a description, without a log: valid domain randomisation.

    Bodies are independent. Every draw is the inertia of some positive mass distribution, because
    second moments are drawn and not masses, centres and inertias one by one.

    Parameters
    ----------
    robot : Robot
        Every body with mass must have inertial parameters.
    count : int
        Number of robots.
    mass : float
        Relative standard deviation of each mass around a description. Centres and inertias vary
        with it: a body's pseudo-inertia has a Wishart density about the description's, the entropic
        prior of weight ``1 / mass^2 - 2.5``; centres deviate by ``mass / sqrt(2)`` of the body's
        radius of gyration.
    density : float
        Relative standard deviation of a factor on mass and inertia alike; centres stay.
    centre : float
        Standard deviation of a shift of the whole body along each axis [m].
    joint_terms : float
        Relative standard deviation of each joint term, log-normal.
    seed : int
        Seed of the draws.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        A body has no usable inertial parameters, or a joint term has no value.

    Examples
    --------
    >>> import feasid
    >>> robot = feasid.Robot.from_dh([(0, 1.0, 0, 0)]).with_values([2, 0, 0, 2, 0, 2, 1, 0, 0, 1.5])
    >>> len(feasid.sample(robot, 3, mass=0.1))
    3
    """
    heavy = [i for i, body in enumerate(robot.bodies) if not body.massless]
    usable = usable_inertials(robot)
    bad = [robot.bodies[i].name for i in heavy if not usable[i]]
    if bad:
        raise InputError(
            f"body {bad[0]!r} has no inertial from a solid body to draw around: correct the "
            "description first (feasid.correct)",
            body=bad[0],
        )
    names = robot.parameter_names
    missing = [".".join(names[c]) for c in np.flatnonzero(~np.isfinite(robot.values))]
    if missing:
        raise InputError(f"{missing[0]} has no value to draw around", parameter=missing[0])
    rng = np.random.default_rng(seed)
    out = np.repeat(robot.values[None], count, axis=0)
    for i in heavy:
        columns = robot.inertial_columns[i]
        mean = pseudo_inertia(robot.values[columns])
        moments = np.repeat(mean[None], count, axis=0)
        if mass >= NARROWEST:  # Wishart draws of this mean, by Bartlett
            size, freedom = len(mean), 2.0 / mass**2
            lower = np.tril(rng.standard_normal((count, size, size)), -1)
            for k in range(size):
                lower[:, k, k] = np.sqrt(rng.chisquare(freedom - k, count))
            root = np.linalg.cholesky(mean) @ lower / np.sqrt(freedom)
            moments = root @ root.transpose(0, 2, 1)
        moments *= _log_normal(density, (count, 1, 1), rng)
        shift = np.repeat(np.eye(4)[None], count, axis=0)
        shift[:, :3, 3] = centre * rng.standard_normal((count, 3))
        out[:, columns] = from_pseudo_inertia(shift @ moments @ shift.transpose(0, 2, 1))
        out[:, robot.rotor_columns(i)] *= _log_normal(np.hypot(mass, density), (count, 1), rng)
    for k in range(len(robot.drives)):
        factors: dict[str, Array] = {}
        for symbol, column in robot.drive_columns(k).items():
            # A term that another bounds has its factor, and stays within.
            known = factors.get(TERMS[symbol].bounded_by if symbol in TERMS else "")
            factors[symbol] = _log_normal(joint_terms, (count,), rng) if known is None else known
            out[:, column] *= factors[symbol]
    varies = out.std(axis=0) > 0
    draws = verify_draws(feasible_set(robot), out)
    return Samples(robot, draws, 1.0, np.where(varies, float(count), np.nan))


def _log_normal(deviation: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Positive factors of mean one with this relative standard deviation."""
    width = np.sqrt(np.log1p(deviation**2))
    return np.asarray(np.exp(width * rng.standard_normal(shape) - 0.5 * width**2))
