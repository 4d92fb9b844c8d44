"""What a caller asks of a fit, and what follows from it before anything is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.core.notes import Note
from feasid.identification.effects.corrections import LogCorrection, corrected_options
from feasid.identification.effects.joint_terms import remove_terms
from feasid.identification.effects.log_check import diagnose_logs
from feasid.identification.effects.selection import DEFAULT_WORDS
from feasid.identification.estimation.noise import Delay, find_delay
from feasid.identification.estimation.priors import find_prior
from feasid.identification.regression import reduce
from feasid.identification.regression.parallel import LogTask
from feasid.identification.regression.triangle import Reduced
from feasid.logs.recording import Recording
from feasid.options.complete import complete_options, select_options
from feasid.options.tables import FitOptions, LogOptions
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import with_fit_terms
from feasid.robot.joint_terms import SEARCHED

if TYPE_CHECKING:
    from feasid.identification.servos.gains import ServoFit


@dataclass(frozen=True, eq=False)
class FitRequest:
    """Logs, robot and options of a fit; what follows from them is computed once."""

    logs: Sequence[Recording | Reduced]
    described: Robot  #: without the joint terms that a fit adds
    caller_options: Mapping[str, Any]
    with_defaults: Mapping[str, Any]  #: these options and the defaults of others
    servo: ServoFit | None = None  #: makes torques of commands

    @classmethod
    def from_call(
        cls,
        data: reduce.Log | Reduced | Sequence[reduce.Log | Reduced],
        robot: Robot | str | Path | None,
        options: Mapping[str, Any],
    ) -> FitRequest:
        """The request of these arguments of `fit`."""
        with_defaults = complete_options(FitOptions, options, "fit")
        with_defaults = reduce.complete_filter_options(with_defaults, "fit")
        find_prior(with_defaults["prior"])  # before a log is read for nothing
        logs = reduce.open_sources(data)
        described = reduce.robot_of_logs(data, logs, robot, with_defaults)
        return cls(logs, described, options, with_defaults)

    def reading_commands(self) -> FitRequest:
        """The request with the servo that makes torques of the logs' commands."""
        from feasid.identification.servos.gains import identify_servo

        servo = identify_servo(self.logs, self.described, self.with_defaults)
        as_torques = servo.log_options(self.with_defaults)
        return replace(
            self,
            caller_options={**self.caller_options, **as_torques},
            with_defaults={**self.with_defaults, **as_torques},
            servo=servo,
        )

    @cached_property
    def _measured_joints(self) -> tuple[Sequence[str] | None, list[Note]]:
        return reduce.find_measured_joints(self.logs, self.described, self.with_defaults)

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options, with the joints whose torques were measured."""
        return {**self.with_defaults, "measured": self._measured_joints[0]}

    @cached_property
    def _wide(self) -> tuple[BaseParameters, list[Note]]:
        terms = self.options["friction"], self.options["drive_inertia"]
        offer, measured = reduce.candidate_terms(self.options), self.options["measured"]
        return reduce.base_with_terms(self.described, self.logs, *terms, offer, measured)

    @property
    def wide(self) -> BaseParameters:
        """Base parameters with every joint term that may enter."""
        return self._wide[0]

    @property
    def notes(self) -> list[Note]:
        """What was assumed about torques and joint terms."""
        return [*self._measured_joints[1], *self._wide[1]]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Joint terms that may enter: the candidates; by default all, if the robot has none."""
        if self.options["candidates"] is not None:
            return tuple(self.options["candidates"])
        reduced = (note for log in self.logs if isinstance(log, Reduced) for note in log.notes)
        added = any(note.code == "friction-added" for note in (*self._wide[1], *reduced))
        return DEFAULT_WORDS if added and self.options["friction"] is None else ()

    @cached_property
    def plain(self) -> BaseParameters:
        """Base parameters without the terms that may enter."""
        offered = {symbol for word in self.words for symbol in SEARCHED[word]}
        robot = remove_terms(self.wide.robot, [offered for _ in self.wide.robot.drives])
        # Nothing may enter, and the base parameters are the same.
        if robot.drives == self.wide.robot.drives:
            return self.wide
        return base_parameters(robot, measured=self.wide.experiment.measured_joints)

    @cached_property
    def tasks(self) -> list[LogTask]:
        """The logs with the options by which they are read."""
        reading, measured = select_options(LogOptions, self.options), self.options["measured"]
        return reduce.assign_cutoff(self.logs, self.wide.robot, reading, measured)

    def find_delay(self, reduced: Reduced) -> Delay:
        """Delay of the torques of less than a sample; those of a servo have none."""
        return find_delay(reduced) if self.servo is None else Delay()

    def check_logs(self) -> list[Note]:
        """Findings about the logs, if the caller wants a diagnosis."""
        if not self.options["diagnose"]:
            return []
        terms = self.options["friction"], self.options["drive_inertia"]
        model, _ = with_fit_terms(self.described, *terms)
        return diagnose_logs(self.tasks, model, self.options["measured"])

    def reading(self, correction: LogCorrection) -> dict[str, Any]:
        """Options that read other logs of these sensors, with what was corrected."""
        reading: dict[str, Any] = select_options(LogOptions, self.caller_options)
        if correction.values:
            reading = corrected_options(reading, correction, self.wide.robot)
        # The completed option, so that other logs are filtered as these were.
        return {**reading, "filtering": self.options["filtering"]}
