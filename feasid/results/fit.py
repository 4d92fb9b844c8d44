"""The result of a fit, and the ways on from there.

Modules that write, draw, sample, report and save are imported at their first use, because a fit
does not need them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Unpack

from feasid.core.arguments import Count, Natural, checked, checked_methods, number
from feasid.core.display import Display, Displayed, Page
from feasid.core.errors import UselessFitError
from feasid.core.files import document_output
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.fit import identify
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import errors_on_log, predict_torques, simulate_fit
from feasid.identification.regression.reduce import Log
from feasid.identification.regression.triangle import Reduced
from feasid.options.complete import document_options
from feasid.options.tables import FitOptions, LogOptions, RangeOptions
from feasid.parameters.identifiability.views import Wanted
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import os

    import pandas as pd

    from feasid.identification.assessment.simulation import Simulation
    from feasid.identification.uncertainty.ranges import ParameterRanges, Range
    from feasid.results.codegen.c import CCode
    from feasid.results.export.file_terms import Actuators
    from feasid.results.export.robot_file import Export
    from feasid.results.export.samples import Samples
    from feasid.results.report.figures import Plots
    from feasid.results.report.summary import Summary

MAX_WIDENING = 1e3  #: Largest factor on the log's deviations of robots that are drawn.

Origin: TypeAlias = Literal["sensor", "joint"]
"""What a constant offset of a torque belongs to."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Fit(Displayed, FittedModel):
    """A physically consistent dynamic model, identified from a log; `feasid.load` returns one too.

    Made by `feasid.fit`. Parameters are ``delta`` (standard, in the order of ``robot.names``) and
    ``beta`` (base parameters); ``robot`` is the robot with these values.
    """

    # -- other logs ----------------------------------------------------------------------------

    def errors(self, other: Any, **options: Unpack[LogOptions]) -> pd.Series[float]:
        """Relative torque errors on another log that was not fitted.

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
            For a floating robot, tau is the torque of the motors at the joints, and the wrench of
            the contacts at the base. If the robot has joints with different units, "all" is the
            root mean square of the errors of each unit, weighted with the number of joints. Torques
            and prediction are filtered alike; ``attrs["raw"]`` is the error of all joints before
            any low-pass, None where the log's signals were filtered, ``attrs["predicted"]`` the
            error expected for this motion without its torques, None without a prior; rows where the
            robot stands have larger ones, as friction holds it with any torque up to its own; see
            `feasid.identification.assessment.evidence.expected_errors`. ``attrs["leakage"]`` is a
            sentence if the log holds fitted rows or repeats the fitted motion, ``attrs["notes"]``
            says which temperatures the log lacks: friction is then that at the model's; and, with
            `rest`, which joints are taken to rest: there is no friction then.

        Raises
        ------
        LogError, InputError
            The log or an option is not usable; the message names what is wrong.
        """
        return errors_on_log(self, other, self.test_options(options))

    def predict(self, log: Any, **options: Unpack[LogOptions]) -> pd.DataFrame:
        """Torques that the identified model predicts for the motion of a log.

        Parameters
        ----------
        log : DataFrame or path
            A log with positions; torques are not needed. It is prepared like the fitted log.
        **options
            Replace options of `feasid.logs.frame.prepare`.

        Returns
        -------
        DataFrame
            ``tau_<joint>`` [N m or N], with the index of the rows of the log that are used;
            ``attrs["notes"]`` as of `errors`.

        Raises
        ------
        LogError, InputError
            The log or an option is not usable; the message names what is wrong.
        """
        return predict_torques(self, log, self.test_options(options))

    def simulate(
        self,
        log: Any = None,
        horizon: Sequence[float] | float = (0.1, 0.3),
        *,
        robot: Robot | str | Path | None = None,
        command: Literal["position"] | None = None,
        kp: Any = None,
        kd: Any = None,
        **options: Any,
    ) -> Simulation:
        """Simulate windows of a log with the fitted model, compared with the description.

        Parameters
        ----------
        log : DataFrame, path or Recording, optional
            Default the first fitted one.
        horizon : float or sequence of float
            Lengths of the windows [s].
        robot : Robot or path, optional
            Model to simulate instead of the fitted one, for example a written file.
        command : {"position"}, optional
            What the log's columns ``cmd_<joint>`` are: they drive the robot through its servos,
            ``kp (cmd - q) - kd dq``; this is the default of a fit of commands, with its gains and
            delay. In other fits measured torques drive the robot by default; then torque errors
            matter as much as the model, and ``.verdict`` is "cannot tell".
        kp, kd : float, sequence or mapping by joint, optional
            Gains of the servos.
        **options
            `delay` and `windows` of `feasid.simulate`; others replace options of
            `feasid.logs.frame.prepare`.

        Returns
        -------
        Simulation
            ``.table`` per joint and horizon, ``.verdict``, ``.plot()``.

        Raises
        ------
        InputError, LogError, NotEnoughDataError
            An option, the log or the robot is not usable; the message names what is wrong.
        """
        drive = {"command": command, "kp": kp, "kd": kd}
        return simulate_fit(self, log, horizon, robot, drive, options)

    # -- what the log leaves open --------------------------------------------------------------

    @document_options(RangeOptions)
    def range(self, wanted: Wanted, **options: Unpack[RangeOptions]) -> Range:
        """The values of a parameter, or of a sum of parameters, over all consistent models that fit
        the log.

        Parameters
        ----------
        wanted : str, (body, symbol), or mapping of these to factors
            ``"forearm.m"``, ``("forearm", "m")``, ``"m3"``, ``"forearm.m + 2 hand.m"``, a base
            parameter's expression, ``{"forearm.m": 1, "hand.m": 2}``.
        **options
            See `feasid.options.tables.RangeOptions`.

        Returns
        -------
        Range
            Both ends are proved in exact arithmetic; see its `certificate`.

        Raises
        ------
        InputError
            A parameter does not exist.
        SolverError
            An end could not be proved.
        """
        return self.ranges([wanted], **options).items[0]

    @document_options(RangeOptions)
    def ranges(
        self, wanted: Iterable[Wanted] | None = None, **options: Unpack[RangeOptions]
    ) -> ParameterRanges:
        """Ranges of several parameters; by default of all standard parameters.

        Parameters
        ----------
        wanted : iterable, optional
        **options
            See `feasid.options.tables.RangeOptions`.

        Returns
        -------
        ParameterRanges

        Raises
        ------
        InputError
            A parameter does not exist.
        SolverError
            An end could not be proved.
        """
        from feasid.identification.uncertainty.ranges import find_ranges, systematic_notes

        assumed = systematic_notes(self.evidence.structure, self.robot.coordinates)
        return find_ranges(self.residual, self.delta, wanted, assumed, **options)

    def sample(
        self,
        count: Natural,
        *,
        seed: Count = 0,
        scale: Annotated[float, number(0.0, MAX_WIDENING, open=True)] = 1.0,
    ) -> Samples:
        """Draw robots that the log and the prior leave possible, to train and test controllers on.

        They are drawn from the posterior density of all standard parameters on the feasible set, by
        Hamiltonian Monte Carlo; see `feasid.identification.uncertainty.posterior`. Every robot is
        verified in exact arithmetic.

        Parameters
        ----------
        count : int
            Number of robots.
        seed : int
            Seed of the draws.
        scale : float
            Factor on the log's standard deviations, at most 1000: values above 1 spread the robots
            more, up to the prior.

        Returns
        -------
        Samples
            A sequence of `Robot`, with ``write``, ``arrays``, ``parameters`` and diagnostics.

        Raises
        ------
        InputError
            The fit had no prior, or the log leaves so much open that chains do not mix.
        SolverError
            A draw is not feasible in exact arithmetic.

        Examples
        --------
        >>> import feasid
        >>> fit = feasid.fit(feasid.datasets.load("unitree_z1"))
        >>> robots = fit.sample(100)
        >>> len(robots), robots.arrays()["body_mass"].shape
        (100, (100, 6))
        """
        from feasid.results.export.samples import sample_posterior

        return sample_posterior(self, count, seed, scale)

    # -- files ---------------------------------------------------------------------------------

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        offset_origin: Origin | Mapping[str, Origin] | None = None,
        extensions: Sequence[str] = (),
        overwrite: bool = False,
        test: Any = None,
        force: bool = False,
        for_: str | None = None,
    ) -> Export:
        """Write the identified robot, and compute the torque errors of programs that read the file.

        The format follows from the path: ``.urdf``, ``.xml`` (MJCF), ``.sdf``, else that of the
        robot's own file, whose text is kept except for the numbers that change. Bodies move in the
        file as in the fit. A body of the fit is a link with all links that are fixed to it; these
        keep their described masses in a file, and the link has the rest of the body's. Friction
        terms that the format lacks are approximated by viscous and Coulomb friction. Terms that the
        format cannot hold are listed and written to a sidecar, which `load_robot` reads with the
        file.

        Parameters
        ----------
        path : path
        offset_origin : {"sensor", "joint"} or mapping of joint to these, optional
            "sensor" where offset friction is an offset of the torque sensor, to be subtracted from
            its measurements, "joint" for a torque that MJCF holds as a constant force. By default
            torques at rest without load decide; if the log has none, the sensor is assumed.
        extensions : sequence of {"drake", "mujoco"}
            Extension elements of URDF: drive inertia as Drake reads it; settings with which
            MuJoCo's compiler keeps the bodies.
        overwrite : bool
        test : DataFrame, path or a sequence of these, optional
            Logs that were not fitted, to compare the file and the fit on.
        force : bool
            Write a model even if `quality` calls it useless, or its log held currents.
        for_ : {"gazebo", "drake", "mujoco", "isaac", "pinocchio", "bullet"}, optional
            The program that shall read the file, and of which what it does not read is listed. The
            torque error of the file as it reads it is among the errors.

        Returns
        -------
        Export
            What was written, what the file lacks, and the torque errors of the fit and of the file.

        Raises
        ------
        UselessFitError
            The fit is useless, with the reason, and `force` is False.
        InputError
            An option does not exist.
        OutputError
            `path` exists and `overwrite` is False, or the file does not read back.
        """
        from feasid.results.export.file_terms import find_offsets
        from feasid.results.export.robot_file import reason_not_to_write, write_fit

        if not force and (reason := reason_not_to_write(self.quality)):
            raise UselessFitError(
                f"this fit is useless: {reason}. {path} was not written: fix the log "
                f"as feasid.diagnose reports, or write it nevertheless with force=True",
                path=str(path),
            )
        what = self, path, find_offsets(self, offset_origin), tuple(extensions)
        return write_fit(*what, overwrite=overwrite, test=test, for_=for_)

    def actuators(self) -> Actuators:
        """Actuator data of each joint, which simulators need in addition to a file's bodies.

        Returns
        -------
        Actuators
            A DataFrame by joint: ``armature`` (drive inertia) [kg m^2 or kg], ``damping`` [N m s
            or N s/m], ``frictionloss`` (dry friction) [N m or N], as a written file has them, and
            ``effort_limit`` of the description [N m or N], NaN where it has none. Its method
            ``to_text`` returns it in the syntax of "mjcf", "isaaclab", "gazebo" or "drake".
        """
        from feasid.results.export.file_terms import Actuators, friction_as_files_hold

        delta = friction_as_files_hold(self.robot, self.solution.problem, bool(self.robot.elastic))
        robot = self.robot.with_values(delta).without_torque_sensors()
        return Actuators.of_robot(robot, robot.values)

    def verify(
        self,
        path: str | os.PathLike[str],
        client: str,
        log: Any = None,
        *,
        offset_origin: Origin | Mapping[str, Origin] | None = None,
    ) -> pd.DataFrame:
        """Compute the torque errors of another program that reads a written file.

        Offsets of torque sensors are subtracted from the measured torques.

        Parameters
        ----------
        path : path
            A file that `write` wrote.
        client : {"pinocchio", "mujoco"}
            Pinocchio's ``rnea`` plus the model's damping, armature, and friction with the sign of
            the velocity, or MuJoCo's ``mj_inverse``. Must be installed.
        log : DataFrame, path or a list of these, optional
            Default the fitted logs; a fit that was loaded from a file has none, so pass one.
        offset_origin
            As of `write`.

        Returns
        -------
        DataFrame
            Relative torque errors of the fit and of the client, per joint and "all".

        Raises
        ------
        MissingExtraError
            The client is not installed.
        InputError
            The client is unknown or rejects the file, it cannot replay this robot, or there is no
            log.
        """
        from feasid.results.export.clients import client_errors
        from feasid.results.export.file_terms import find_offsets

        offsets = find_offsets(self, offset_origin)
        sensors = {x.joint: x.value for x in offsets if x.origin == "sensor"}
        return client_errors(self, path, client, log, sensors)

    def export_c(self, path: str | Path, **options: Any) -> CCode:
        """Write the model as C99; see `feasid.export_c` for the options.

        Parameters
        ----------
        path : path
            Path of the source file; the header is written to the same folder.
        **options
            Of `feasid.export_c`.

        Returns
        -------
        CCode

        Raises
        ------
        InputError, OutputError
            As of `feasid.export_c`.
        """
        from feasid.results.codegen.c import export_c

        return export_c(self.robot.without_torque_sensors(), path, **options)

    @document_output
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Keep the fit in a small file that `feasid.load` reads, also in later versions.

        Text and plain arrays in a ZIP archive: parameters, covariance, certificate, options,
        notes, the reduced log, versions, and hashes of the description and the logs.
        """
        from feasid.results.archive.fit import save

        save(self, path, overwrite=overwrite)

    def summary(self, test: Any = None) -> Summary:
        """The full report as text, with ``.tables``, ``.markdown()`` and ``.latex()``.

        Parameters
        ----------
        test : DataFrame, path, a sequence of these, or Series, optional
            Logs that were not fitted, or the `errors` on them.

        Returns
        -------
        Summary
            Its tables of coefficients have value, standard error, 95 % interval, the
            description's value and the source: the data, the prior or a bound.

        Raises
        ------
        LogError, InputError
            The test log is not usable; the message names what is wrong.
        """
        from feasid.results.report.summary import summary

        return summary(self, test)

    @property
    def plot(self) -> Plots:
        """Figures: ``fit.plot()`` of torques, ``fit.plot.friction()`` and others."""
        from feasid.results.report.figures import Plots

        return Plots(self)

    def report(
        self,
        path: str | Path,
        *,
        test: Any = None,
        log: Any = None,
        command: str = "",
        overwrite: bool = False,
    ) -> Page:
        """Write one self-contained HTML page, and its numbers to a JSON file.

        The page shows verdicts, errors, the evidence for each statement, curves that zoom, tables
        that sort, and how to reproduce it. It loads nothing from elsewhere, and text from files is
        escaped. ``report.json`` has the schema of `feasid.results.report.contents`.

        Parameters
        ----------
        path : path
        test : DataFrame, path or a sequence of these, optional
            Logs that were not fitted; their errors are shown next to those of the fitted log.
        log : DataFrame, path or a sequence of these, optional
            Further logs to draw; default the fitted ones.
        command : str
            The command that made the report, to be shown on the page.
        overwrite : bool
            Whether files that exist are replaced.

        Returns
        -------
        Page
            Its ``path``; in a notebook a link and a preview.

        Raises
        ------
        OutputError
            A file exists and `overwrite` is False, or it cannot be written.
        InputError
            The page and its numbers would have the same name, or a log cannot be used.
        MissingExtraError
            Names the extra that templates or pictures need.
        """
        from feasid.results.report.page import write_report

        write_report(self, path, test=test, log=log, command=command, overwrite=overwrite)
        return Page(Path(path))

    def display(self, test: Any = None) -> Display:
        """The short display of the fit that ``print``, a notebook and ``feasid fit`` show.

        Parameters
        ----------
        test : DataFrame, path, a sequence of these, or Series, optional
            Logs that were not fitted, or the `errors` on them.

        Returns
        -------
        Display

        Raises
        ------
        LogError, InputError
            The test log is not usable; the message names what is wrong.
        """
        from feasid.results.report.summary import display

        shown = display(self, test)
        return replace(shown, more=f"{self.version_line}\n{shown.more}") if self.made else shown

    @property
    def version_line(self) -> str:
        """Date and package version of the saved fit; empty if it was not saved."""
        made = [self.made.get(key, "unknown") for key in ("created", "feasid")]
        return f"saved {made[0]} by feasid {made[1]}" if self.made else ""


@checked
@document_options(FitOptions)
@one_thread()
@step("fitting")
def fit(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    **options: Unpack[FitOptions],
) -> Fit:
    """Identify the parameters of a robot from its log, among those that a real robot can have.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
        The log: ``q_<joint>`` and ``tau_<joint>`` per joint, time ``t``, see
        `feasid.logs.frame`. Several logs are fitted together.
    robot : Robot or path, optional
        Default ``data.attrs["robot"]``, or the robot of the reduced data.
    **options
        See `feasid.options.tables.FitOptions`.

    Returns
    -------
    Fit

    Raises
    ------
    LogError, NotEnoughDataError, DescriptionError, InputError
        The input is not usable; the message names what is wrong.
    SolverError
        No solution passed verification; nothing unverified is returned.
    """
    return fit_of_model(identify(data, robot, options))


def fit_of_model(model: FittedModel) -> Fit:
    """The fit with these values, and with what was already computed of them."""
    answer = Fit(**{f.name: getattr(model, f.name) for f in fields(model)})
    vars(answer).update(vars(model))
    return answer
