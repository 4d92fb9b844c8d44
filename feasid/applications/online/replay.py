"""A log played back through an online fit: its estimates while the robot ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Unpack

import numpy as np

from feasid.applications.online.acceptance import OnlineEstimate
from feasid.applications.online.online_fit import OnlineFit
from feasid.core.arguments import checked, checked_methods, number
from feasid.core.charts import BLUE, GREEN, GREY, YELLOW, Chart, Panel, Series
from feasid.core.errors import InputError, NotEnoughDataError, did_you_mean
from feasid.core.figures import draw
from feasid.core.progress import step
from feasid.core.text import quote
from feasid.logs.recording import Recording, read_signals
from feasid.options.complete import check_options
from feasid.options.tables import ReadOptions
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import resolve_robot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ESTIMATE_INTERVAL = 1.0  #: Time between estimates [s].
Seconds: TypeAlias = Annotated[float, number(0.0, 86_400.0, open=True)]


@checked_methods
@dataclass(frozen=True, eq=False)
class Replay:
    """Estimates of a log in the order of time."""

    online: OnlineFit  #: As it was at the end.
    estimates: tuple[OnlineEstimate, ...]  #: In the order of time.

    @property
    def table(self) -> pd.DataFrame:
        """By estimate: rows, R2, prediction errors in units of the noise, acceptance."""
        import pandas as pd

        evidence = [e.decision.evidence for e in self.estimates]
        return pd.DataFrame(
            {
                "rows": [e.rows for e in self.estimates],
                "r2": [e.r2 for e in self.estimates],
                "error": [float(np.sqrt(np.mean(e.error**2))) for e in evidence],
                "nominal_error": [float(np.sqrt(np.mean(e.nominal_error**2))) for e in evidence],
                "open": [e.decision.open for e in self.estimates],
                "why": ["; ".join(e.decision.reasons) for e in self.estimates],
            },
            index=pd.Index([e.time for e in self.estimates], name="time"),
        )

    def line(self, k: int) -> str:
        """One estimate in a line.

        Parameters
        ----------
        k : int
            Place of the estimate in `estimates`.

        Returns
        -------
        str

        Raises
        ------
        InputError
            `k` is not the index of an estimate.
        """
        if not -len(self.estimates) <= k < len(self.estimates):
            raise InputError(f"k must be the place of one of {len(self.estimates)} estimates")
        e = self.estimates[k]
        model = "identified" if e.decision.open else "nominal   "
        why = f"  {e.decision.reasons[0]}" if e.decision.reasons else ""
        ratio = e.decision.evidence.ratio
        cell = f"{ratio:6.3f}" if np.isfinite(ratio) else "     -"
        return f"{e.time:8.1f} s  R2 {e.r2:7.4f}  error / nominal's {cell}  {model}{why}"

    def __str__(self) -> str:
        lines = [self.line(k) for k in range(len(self.estimates))]
        lines += [f"change at {c}" for c in self.online.changes]
        lines += [f"{n} samples {cause}" for cause, n in self.online.faults.items()]
        return "\n".join(lines)

    def plot(self) -> Figure:
        """R2, errors of prediction and the gate over time."""
        table, t = self.table, self.table.index.to_numpy()
        changes = [(0, change.time, GREY) for change in self.online.changes]
        errors = [
            Series(t, table["error"], BLUE, "identified, predicted before it is learnt"),
            Series(t, table["nominal_error"], YELLOW, "nominal"),
        ]
        gate = [
            Series(t, table["r2"].clip(lower=0.0), BLUE, "R2"),
            Series(t, np.where(table["open"], 1.0, 0.0), GREEN, "gate open (1) or closed (0)"),
        ]
        share = 100.0 * table["open"].mean()
        panels = [
            Panel(errors, "error / noise", "time [s]", scales=("", "log"), lines=changes),
            Panel(gate, "", "time [s]", lines=changes),
        ]
        title = f"The gate is open {share:.0f} % of the time"
        shows = "R2, errors of prediction and the gate over time; dashed: changes"
        return draw(Chart(title, shows, panels, 1, 2.4, 8))


@checked
@step("replaying the log")
def replay(
    log: Any,
    robot: Robot | str | Path | None = None,
    *,
    window: Seconds | None = 10.0,
    interval: Seconds = ESTIMATE_INTERVAL,
    each: Callable[[Replay], None] | None = None,
    online: dict[str, Any] | None = None,
    **options: Unpack[ReadOptions],
) -> Replay:
    """Replay a log through `feasid.OnlineFit`.

    Parameters
    ----------
    log : DataFrame, mapping of arrays or path
    robot : Robot or path, optional
        The nominal model; default ``log.attrs["robot"]``.
    window : float, optional
        Length of the window of samples [s]; None for all samples.
    interval : float
        Time between estimates [s].
    each : callable, optional
        Called after every estimate with the replay so far.
    online : dict, optional
        Further options of `feasid.OnlineFit`; by default `block` follows from `window`.
    **options
        How the log is read.

    Returns
    -------
    Replay
        Prints itself.

    Raises
    ------
    InputError
        The log has no torques or is shorter than a block, or an option is unknown.
    """
    complete = check_options(ReadOptions, options, "replay")
    online, fixed = dict(online or {}), ("robot", "rate", "window")
    known = [name for name in signature(OnlineFit).parameters if name not in fixed]
    for name in online:
        if name not in known:
            hint = "" if name in fixed else did_you_mean(name, known)
            reason = ": replay() sets it itself" * (name in fixed)
            raise InputError(f"online has no option {quote(name)}{reason}{hint}", option=str(name))
    recording = Recording.from_source(log)
    robot = resolve_robot(None if robot else recording.frame, robot)
    raw = read_signals(recording, robot, **complete)
    steps = np.diff(raw.t)
    if not steps.size:
        raise NotEnoughDataError("a replay needs at least two rows, and the log has one")
    rate = 1.0 / float(np.median(steps))
    # As long as those that `OnlineFit` chooses; the window is a whole number of them.
    block = online.pop("block", max(1, round(min(0.125, (window or 10.0) / 16) * rate)))
    if not (isinstance(block, int) and block >= 1):
        raise InputError(f"block must be a number of samples, not {block!r}", option="block")
    size = None if window is None else max(2, round(window * rate / block)) * block
    fit = OnlineFit(robot, rate, window=size, block=block, **online)
    q, tau, dq = (raw.values.get(x) for x in ("q", "tau", "dq"))
    if q is None or tau is None:
        raise InputError("the log needs positions and torques")
    done: list[OnlineEstimate] = []
    pause = max(1, round(interval * rate))
    for first in range(0, len(q), pause):
        part = slice(first, first + pause)
        fit.extend(q[part], tau[part], None if dq is None else dq[part], raw.t[part])
        done.append(fit.estimate())
        if each is not None:
            each(Replay(fit, tuple(done)))
    return Replay(fit, tuple(done))
