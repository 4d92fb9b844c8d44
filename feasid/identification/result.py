"""What a fit returns: its numbers, and the ways on from them."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.errors import OutputError
from feasid.identification.fitted import Fitted
from feasid.identification.views.page import write_report
from feasid.identification.views.plots import torques
from feasid.identification.views.text import summary
from feasid.robot.write import write_mjcf, write_urdf

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Fit(Fitted):
    """A dynamic model that can exist, identified from a log."""

    def write(
        self, path: str | Path, *, joint_dynamics: bool = False, overwrite: bool = False
    ) -> None:
        """Write the robot's own file, URDF or MJCF, with the identified inertials in it.

        Parameters
        ----------
        path : path
        joint_dynamics : bool
            Also write viscous and Coulomb friction, as far as the format has them.
        overwrite : bool

        Raises
        ------
        OutputError
            When the robot did not come from a file, or `path` exists and `overwrite` is False.
        """
        source = self.robot.source
        if source is not None and source.format == "mjcf":
            self.to_mjcf(path, overwrite=overwrite)
        else:
            self.to_urdf(path, overwrite=overwrite)

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
        write_urdf(self.robot, path, overwrite=overwrite)

    def to_mjcf(
        self, path: str | Path, *, joint_dynamics: bool = False, overwrite: bool = False
    ) -> None:
        """The same for a robot that came from an MJCF file; see `to_urdf`."""
        self._check_source("mjcf")
        write_mjcf(self.robot, path, overwrite=overwrite)

    def _check_source(self, kind: str) -> None:
        if self.robot.source is None or self.robot.source.format != kind:
            found = "no file" if self.robot.source is None else self.robot.source.format.upper()
            raise OutputError(
                f"this robot was not read from a {kind.upper()} file (but from {found}), so there "
                "is nothing to write back to; fit.bodies has the numbers"
            )

    def summary(self, test: Any = None) -> str:
        """The fit on one screen; `test` is a log that was not fitted, or its `errors`."""
        return summary(self, test)

    def plot(self, log: Any = None) -> Figure:
        """Measured and predicted torques per joint; see `feasid.identification.views.plots`."""
        return torques(self, log)

    def report(
        self, path: str | Path, *, test: Any = None, log: Any = None, overwrite: bool = False
    ) -> None:
        """Write one self-contained HTML page: summary, tables and torque plots.

        Parameters
        ----------
        path : path
        test : DataFrame, path or a sequence of these, optional
            Logs that were not fitted; their errors stand beside those of the fitted one.
        log : DataFrame, path or a sequence of these, optional
            The logs to draw beside the tests; default those fitted.
        overwrite : bool
        """
        write_report(self, path, test=test, log=log, overwrite=overwrite)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>{self.base_table.to_html()}"
