"""What a fit returns: parameters, errors, verdict, and the ways on from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.arrays import Array
from feasid.errors import CertificateError, OutputError
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import FeasibleFit
from feasid.identifiability.base import BaseParameters
from feasid.identification.statistics import condition_number, standard_deviations
from feasid.logs.columns import coordinate_names
from feasid.reduction.leakage import leakage
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.inertia import to_mass_com_inertia
from feasid.robot.mjcf.write import write_mjcf
from feasid.robot.parts import DRIVE_SYMBOLS
from feasid.robot.urdf.write import write_urdf

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from feasid.feasibility.proof.claim import Certificate


@dataclass(frozen=True, eq=False)
class Fit:
    """A dynamic model that can exist, identified from a log.

    Attributes
    ----------
    robot : Robot
        With the identified parameters as its own; ready for `feasid.inverse_dynamics`.
    description : Robot
        What went in, with the joint terms that were fitted.
    base_parameters : BaseParameters
    feasible : FeasibleSet
    solution : FeasibleFit
        With ``delta`` (n standard parameters), ``beta`` and what was verified.
    optimum : FeasibleFit
        The optimum of feasible least squares, before `slack` was traded for a closer model.
    reduced : Reduced
        The log.
    equations : Reduced
        What was fitted: `reduced`, with robust weights when these were asked for.
    weights : ndarray, shape (dof,)
    notes : tuple of str
        What was assumed, derived, filtered and left out.
    log_options : mapping
        How the log was prepared; other logs are prepared alike.
    data : DataFrame, path or reduced data
        What was fitted, as it was given.
    """

    robot: Robot
    description: Robot
    base_parameters: BaseParameters
    feasible: FeasibleSet
    solution: FeasibleFit
    optimum: FeasibleFit
    reduced: Reduced
    equations: Reduced
    weights: Array
    notes: tuple[str, ...] = ()
    log_options: Mapping[str, Any] = field(default_factory=dict)
    data: Any = field(default=None, repr=False)

    # -- parameters --------------------------------------------------------------------------

    @property
    def delta(self) -> Array:
        """All standard parameters, shape (n,), in the order of ``robot.names``."""
        return self.solution.delta

    @property
    def beta(self) -> Array:
        """Base parameters, shape (nb,)."""
        return self.solution.beta

    @cached_property
    def base(self) -> pd.DataFrame:
        """Base parameters: value, standard deviation and relative deviation [%].

        Deviations by eq. (81)-(83) of Sousa and Cortesao (2014) for the weighted equations; see
        `feasid.identification.statistics` for what they leave out. ``ols`` is the estimate that
        feasibility did not constrain.
        """
        import pandas as pd

        r, rho, residual = self.equations.triangle(self.weights)
        total = float(np.hypot(residual, np.linalg.norm(r @ self.beta - rho)))
        rows = self.reduced.samples * len(self.weights)
        deviation = standard_deviations(r, total, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = 100 * deviation / np.abs(self.beta)
        return pd.DataFrame(
            {
                "value": self.beta,
                "std": deviation,
                "relative_std_percent": relative,
                "ols": np.linalg.lstsq(r, rho, rcond=1e-12)[0],
            },
            index=pd.Index(self.base_parameters.expressions, name="base parameter"),
        )

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """Per body: mass [kg], centre of mass [m] and inertia about it [kg m^2], body axes."""
        import pandas as pd

        ten = self.delta[self.robot.inertial_columns]
        mass, com, inertia = to_mass_com_inertia(ten)
        columns = {"mass": mass} | {f"com_{a}": com[:, k] for k, a in enumerate("xyz")}
        for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            columns[f"I{'xyz'[r]}{'xyz'[c]}"] = inertia[:, r, c]
        names = [b.name for b in self.robot.bodies]
        return pd.DataFrame(columns, index=pd.Index(names, name="body"))

    @cached_property
    def joint_terms(self) -> pd.DataFrame:
        """Per drive: drive inertia and friction coefficients; NaN where a term is not fitted."""
        import pandas as pd

        rows = {
            drive.name: {s: self.delta[c] for s, c in self.robot.drive_columns(k).items()}
            for k, drive in enumerate(self.robot.drives)
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*DRIVE_SYMBOLS])
        return frame.rename_axis(index="drive").dropna(axis="columns", how="all")

    # -- errors ------------------------------------------------------------------------------

    @cached_property
    def relative_error(self) -> pd.Series[float]:
        """Relative torque error on the fitted log, per joint and "all"; see `errors`."""
        return self._errors(self.reduced)

    def errors(self, other: Any, **options: Any) -> pd.Series[float]:
        """Relative torque errors on another log, which the fit has not seen.

        Parameters
        ----------
        other : DataFrame, path or Reduced
            Prepared like the fitted log, at the same cut-off.
        **options
            Replace options of `feasid.logs.frame.prepare`.

        Returns
        -------
        Series
            ``|tau - tau_hat| / |tau|``, eq. (84) of Sousa and Cortesao (2014), per joint and "all".
            ``attrs["leakage"]`` says so when the log holds the fitted rows or repeats the fitted
            motion.
        """
        from feasid.reduction.reduce import reduce

        reduced = reduce(
            other, self.description, base=self.base_parameters, **self.test_options(options)
        )
        errors = self._errors(reduced)
        errors.attrs["leakage"] = leakage(self.reduced, reduced)
        return errors

    def _errors(self, reduced: Reduced) -> pd.Series[float]:
        import pandas as pd

        residual, torque = reduced.residuals(self.beta), reduced.torque_norms
        joints = coordinate_names(self.robot)
        values = [*residual / np.where(torque > 0, torque, np.nan)]
        total = np.linalg.norm(torque)
        values.append(np.linalg.norm(residual) / total if total > 0 else np.nan)
        index = pd.Index([*joints, "all"], name="joint")
        return pd.Series(values, index=index, name="relative torque error")

    def predict(self, log: Any, **options: Any) -> pd.DataFrame:
        """Torques that the identified model predicts for the motion of a log.

        Parameters
        ----------
        log : DataFrame or path
            Positions at least; prepared like the fitted log. Torques are not needed.
        **options
            Replace options of `feasid.logs.frame.prepare`.

        Returns
        -------
        DataFrame
            ``tau_<joint>`` [N m or N], with the labels of the log's rows that are in its runs.
        """
        import pandas as pd

        from feasid.dynamics.regressor import inverse_dynamics
        from feasid.logs.frame import prepare
        from feasid.reduction.sources import open_log

        frame = open_log(log)
        motion = prepare(frame, self.robot, torque=False, **self.test_options(options))
        columns = [f"tau_{c}" for c in motion.coordinates]
        parts = [
            pd.DataFrame(
                inverse_dynamics(self.robot, run.q, run.dq, run.ddq),
                index=frame.index[run.rows],
                columns=columns,
            )
            for run in motion.runs
        ]
        return pd.concat(parts)

    def test_options(self, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Options for another log: those of the fitted one, at the cut-off that it got."""
        chosen = {**self.log_options, **(options or {})}
        if chosen.get("cutoff") is None and self.reduced.cutoff is not None:
            chosen["cutoff"] = self.reduced.cutoff
        return chosen

    # -- quality -----------------------------------------------------------------------------

    @cached_property
    def condition_number(self) -> float:
        """Condition number of the regression matrix of the fitted log."""
        return condition_number(self.reduced.triangle()[0])

    @cached_property
    def price(self) -> float:
        """Relative increase of the residual over the smallest that is possible feasibly."""
        residual = self.equations.triangle(self.weights)[2]
        best = np.hypot(np.sqrt(self.optimum.objective), residual)
        return float(np.hypot(np.sqrt(self.solution.objective), residual) / best - 1)

    @cached_property
    def certificate(self) -> Certificate:
        """Proof, in rationals, that the identified parameters can exist; see its ``verify``."""
        from feasid.feasibility.check import check

        certificate = check(self, feasible=self.feasible).certificate
        if certificate is None:
            raise CertificateError("the identified parameters could not be certified")
        return certificate

    # -- ways on -----------------------------------------------------------------------------

    def to_urdf(
        self, path: str | Path, *, joint_dynamics: bool = False, overwrite: bool = False
    ) -> None:
        """Write the robot's own file with the identified inertials in place of its own.

        Parameters
        ----------
        path : path
        joint_dynamics : bool
            Also write viscous and Coulomb friction as ``<dynamics damping friction>``.
        overwrite : bool

        Raises
        ------
        OutputError
            When the robot did not come from a URDF, or `path` exists and `overwrite` is False.
        """
        self._check_source("urdf")
        write_urdf(self.robot, path, joint_dynamics=joint_dynamics, overwrite=overwrite)

    def to_mjcf(
        self, path: str | Path, *, joint_dynamics: bool = False, overwrite: bool = False
    ) -> None:
        """The same for a robot that came from an MJCF file; see `to_urdf`."""
        self._check_source("mjcf")
        write_mjcf(self.robot, path, joint_dynamics=joint_dynamics, overwrite=overwrite)

    def _check_source(self, kind: str) -> None:
        if self.robot.source is None or self.robot.source.format != kind:
            found = "no file" if self.robot.source is None else self.robot.source.format.upper()
            raise OutputError(
                f"this robot was not read from a {kind.upper()} file (but from {found}), so there "
                "is nothing to write back to; fit.parameters has the numbers"
            )

    def summary(self, test: Any = None) -> str:
        """The fit on one screen; `test` is a log that was not fitted, or its `errors`."""
        from feasid.identification.views.text import summary

        return summary(self, test)

    def plot(self, log: Any = None) -> Figure:
        """Measured and predicted torques per joint; see `feasid.identification.views.plots`."""
        from feasid.identification.views.plots import torques

        return torques(self, log)

    def report(
        self, path: str | Path, *, test: Any = None, log: Any = None, overwrite: bool = False
    ) -> None:
        """Write one self-contained HTML page: summary, tables and torque plots.

        Parameters
        ----------
        path : path
        test : DataFrame or path, optional
            A log that was not fitted; its errors stand beside those of the fitted one.
        log : DataFrame or path, optional
            The log to draw beside the test; default the fitted one.
        overwrite : bool
        """
        from feasid.identification.views.page import write_report

        write_report(self, path, test=test, log=log, overwrite=overwrite)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary())}</pre>{self.base.to_html()}"
