"""What a model does with other logs: errors and predicted torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics
from feasid.errors import InputError
from feasid.formats.load import load_robot
from feasid.identifiability.base import BaseParameters
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording
from feasid.options.tables import LogOptions
from feasid.regression.duplicates import find_leakage, find_shared_rows
from feasid.regression.reduce import open_sources, reduce
from feasid.regression.triangle import Reduced, relative_errors
from feasid.robot.description import Robot
from feasid.servos.gains import ServoFit

if TYPE_CHECKING:
    import pandas as pd

    from feasid.assessment.simulation import Simulation
    from feasid.codegen.c import CCode


@checked_methods
class Predictor:
    """A robot with parameters, and the log that they came from."""

    robot: Robot
    base: BaseParameters
    reduced: Reduced
    log_options: Mapping[str, Any]
    recordings: Sequence[Recording] = ()
    servo: ServoFit | None = None

    @property
    def beta(self) -> Array:
        """Base parameters, shape (nb,)."""
        return np.asarray(self.base.K @ self.robot.values)

    # -- errors ------------------------------------------------------------------------------

    @cached_property
    def relative_error(self) -> pd.Series[float]:
        """Relative torque error on the fitted log, per joint and "all"; see `errors`."""
        errors = self.errors_of(self.reduced)
        errors.attrs["raw"] = self.raw_error(self.reduced)
        return errors

    def errors(self, other: Any, **options: Unpack[LogOptions]) -> pd.Series[float]:
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
            Of joints of a floating robot tau is what their motors apply, of its base what contacts
            do. Where units differ "all" is the root of the mean square of those of each unit,
            weighted with their number of joints.
            Torques and prediction are filtered alike; ``attrs["raw"]`` is the error of all joints
            before any low-pass, None where the log's signals were filtered, ``attrs["foretold"]``
            what was to be expected of this motion before its torques were seen, None where a model
            does not foretell; see `feasid.assessment.quality.foretell`.
            ``attrs["leakage"]`` says so when the log holds the fitted rows or repeats the fitted
            motion.

        Raises
        ------
        LogError, InputError
            What is wrong with the log or an option, by name.
        """
        chosen = self.test_options(options)
        sources = open_sources(other)
        reduced = reduce(sources, base=self.base, **chosen)
        errors = self.errors_of(reduced)
        errors.attrs["raw"] = self.raw_error(reduced)
        errors.attrs["foretold"] = self.foretell(reduced)
        floats = robot_floats(self.base.robot)
        own, measured = self.test_options(), self.base.experiment.measured_joints
        rows = (
            None
            if floats
            else find_shared_rows(
                self.recordings, sources, self.base.robot, (own, chosen), measured
            )
        )
        errors.attrs["leakage"] = rows or find_leakage(self.reduced, reduced)
        return errors

    def errors_of(self, reduced: Reduced, beta: Array | None = None) -> pd.Series[float]:
        """Relative torque errors on reduced data.

        Parameters
        ----------
        reduced : Reduced
            For the same base parameters.
        beta : ndarray, shape (nb,), optional
            Default the fitted ones.

        Returns
        -------
        Series
            Per joint and "all"; NaN where there is no torque.
        """
        chosen = self.beta if beta is None else beta
        squares = reduced.residuals(chosen) ** 2, reduced.torque_norms**2
        return self._errors_by_joint(relative_errors(self.robot, *squares))

    def _errors_by_joint(self, values: Sequence[float] | Array) -> pd.Series[float]:
        """Relative torque errors of every joint and of all, shape (dof + 1,), with their names."""
        import pandas as pd

        index = pd.Index([*self.robot.coordinates, "all"], name="joint")
        return pd.Series(np.asarray(values), index=index, name="relative torque error")

    def foretell(self, reduced: Reduced) -> pd.Series[float] | None:
        """Errors to expect on a motion; None for a model that does not say how sure it is.

        Parameters
        ----------
        reduced : Reduced
            Of the motion.

        Returns
        -------
        Series or None

        Raises
        ------
        InputError
            `reduced` is something else.
        """
        return None

    def raw_error(self, reduced: Reduced) -> float | None:
        """Relative error of all joints at the kept rows, unfiltered.

        None without strata, and where contacts push, whose forces no model predicts.

        Parameters
        ----------
        reduced : Reduced
            For the same base parameters.

        Returns
        -------
        float or None
        """
        if not reduced.strata or reduced.power is not None:
            return None
        missed, torque = np.zeros((2, len(reduced.strata)))
        for j, (strata, support) in enumerate(zip(reduced.strata, reduced.supports, strict=True)):
            v = np.append(self.beta[list(support)], -1.0)
            missed[j] = float(np.sum((strata.raw @ v) ** 2))
            torque[j] = float(np.sum(strata.raw[:, -1] ** 2))
        return float(relative_errors(self.robot, missed, torque)[-1]) if torque.any() else None

    def predict(self, log: Any, **options: Unpack[LogOptions]) -> pd.DataFrame:
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

        Raises
        ------
        LogError, InputError
            What is wrong with the log or an option, by name.
        """
        import pandas as pd

        recording = Recording.from_source(log)
        chosen = self.test_options(options)
        if chosen.get("contacts"):
            raise InputError(
                "predict gives what motors and contacts do together: leave contacts out "
                "(contacts=None) and subtract feasid.floating.contact_torques",
                option="contacts",
            )
        motion = recording.motion(self.robot, torque=False, **chosen)
        labels = recording.table(self.robot, chosen.get("topic")).index
        columns = [f"tau_{c}" for c in motion.coordinates]
        parts = [
            pd.DataFrame(
                inverse_dynamics(self.robot, run.q, run.dq, run.ddq),
                index=labels[run.rows],
                columns=columns,
            )
            for run in motion.runs
        ]
        return pd.concat(parts)

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
        """Simulate windows of a log, beside the description with fitted joint terms.

        Parameters
        ----------
        log : DataFrame, path or Recording, optional
            Default the first fitted one.
        horizon : float or sequence of float
            Lengths of the windows [s].
        robot : Robot or path, optional
            What is simulated in place of the fitted model: a file written of it, for example.
        command : {"position"}, optional
            What the log's columns ``cmd_<joint>`` are: they drive the robot through its servos,
            ``kp (cmd - q) - kd dq``; default of a fit of commands, with its gains and delay.
            By default of other fits measured torques drive it, and errors are those of
            torques as much as of the model: ``.verdict`` is then "cannot tell".
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
            What is wrong with an option, the log or the robot, by name.
        """
        from feasid.assessment.simulation import robot_as_described, simulate

        if log is None and not self.recordings:
            raise InputError("reduced data hold no samples to simulate: pass the log")
        found = None if self.servo is None else self.servo.servo
        if (
            command is None
            and kp is None
            and kd is None
            and found is not None
            and found.has_only_gain_and_damping
        ):
            command, kp = "position", found.gains
            options = {"delay": max(found.delay, 0.0), **options}
        description = self._described_robot()
        return simulate(
            self.robot if robot is None else robot,
            self.recordings[0] if log is None else log,
            fitted=self.robot,
            reference=description and robot_as_described(self.base, description, self.reduced),
            horizon=horizon,
            command=command,
            kp=kp,
            kd=kd,
            name="the fit" if robot is None else "",
            **{**self.test_options(), **options},
        )

    def _described_robot(self) -> Robot | None:
        """The robot with its description's inertials, where a file gives some."""
        source = self.robot.source
        if source is None or not source.text:
            return None
        return load_robot(source.text.decode(), **{**source.reading})

    def export_c(self, path: str | Path, **options: Any) -> CCode:
        """Write the model as C99; see `feasid.export_c` for the options.

        Parameters
        ----------
        path : path
            Of the source; the header is written beside it.
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
        from feasid.codegen.c import export_c

        return export_c(self.robot, path, **options)

    def test_options(self, options: LogOptions | None = None) -> LogOptions:
        """Options for another log: those of the fitted one, at the cut-off that it got.

        Parameters
        ----------
        options : mapping, optional
            Replace those of the fitted log.

        Returns
        -------
        mapping
            `feasid.options.tables.LogOptions`.
        """
        chosen = cast(LogOptions, {**self.log_options, **(options or {})})
        if chosen.get("cutoff") is None and self.reduced.cutoff is not None:
            chosen["cutoff"] = self.reduced.cutoff
        return chosen
