"""What a fit returns: its numbers, and the ways on from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.core.arguments import checked_methods
from feasid.core.display import Display, Displayed, Page, Summary
from feasid.identification.fitted import FittedModel

if TYPE_CHECKING:
    from feasid.report.figures import Plots


@checked_methods
class Fit(Displayed, FittedModel):
    """A dynamic model that can exist, identified from a log."""

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Keep the fit in a small file that `feasid.load` reads, also in later versions.

        Text and plain arrays in a ZIP archive: parameters, covariance, certificate, options,
        notes, the reduced log, versions, and hashes of the description and the logs.

        Parameters
        ----------
        path : path
        overwrite : bool
            Whether a file that exists is replaced.

        Raises
        ------
        OutputError
            `path` exists and `overwrite` is False, or cannot be written; nothing is lost.
        """
        from feasid.archive.fit import save
        from feasid.report.contents import report_contents

        content = report_contents(self, fitted=self.recordings)
        save(self, path, str(self.summary()), self.display(), content, overwrite=overwrite)

    def summary(self, test: Any = None) -> Summary:
        """All there is to say: prints as text; ``.tables``, ``.markdown()``, ``.latex()``.

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
            What is wrong with the test log.
        """
        from feasid.report.summary import summary

        return summary(self, test)

    @property
    def plot(self) -> Plots:
        """Pictures: ``fit.plot()`` draws torques, ``fit.plot.friction()`` and others the rest."""
        from feasid.report.figures import Plots

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
        """Write one self-contained HTML page, and its numbers as JSON beside it.

        Verdicts on feasibility and on prediction, errors, claims and who makes them, curves that
        zoom, tables that sort, and how to reproduce it. The page loads nothing, and what comes
        from files is escaped. ``report.json`` has the schema of
        `feasid.report.contents`.

        Parameters
        ----------
        path : path
        test : DataFrame, path or a sequence of these, optional
            Logs that were not fitted; their errors stand beside those of the fitted one.
        log : DataFrame, path or a sequence of these, optional
            The logs to draw beside the tests; default those fitted.
        command : str
            What was typed to get here, for those who want to do it again.
        overwrite : bool
            Whether files that exist are replaced.

        Returns
        -------
        Page
            Its ``path``; in a notebook a link and a preview.

        Raises
        ------
        OutputError
            A file exists and `overwrite` is False, or cannot be written.
        InputError
            The page would have the name of its numbers; a log cannot be used.
        MissingExtraError
            Names the extra that templates or pictures need.
        """
        from feasid.report.page import write_report

        write_report(self, path, test=test, log=log, command=command, overwrite=overwrite)
        return Page(Path(path))

    def display(self, test: Any = None) -> Display:
        """The fit at a glance: what a prompt, a notebook and ``feasid fit`` show.

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
            What is wrong with the test log.
        """
        from feasid.report.summary import display

        return display(self, test)
