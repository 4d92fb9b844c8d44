"""Findings about a log, and the diagnosis that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from feasid.core.arguments import checked_methods
from feasid.core.display import Display, Displayed, Measure

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("error", "warning", "note")  #: Fix before fitting; a fit would be worse; good to know.


@checked_methods
@dataclass(frozen=True)
class Finding:
    """One problem or property of a log, with the evidence and, if known, a remedy."""

    code: str  #: The kind, in one word: "degrees", "swap", "sign", "gear", "lag", "stuck" ...
    level: str  #: One of "error", "warning", "note".
    message: str  #: The finding as a sentence with numbers.
    remedy: str = ""  #: What to do: an option of `feasid.fit`, or an instruction.
    joints: tuple[str, ...] = ()  #: Names of the joints concerned.
    columns: tuple[str, ...] = ()  #: Names of the columns concerned.
    #: Tuple of (first, last): row numbers of the log, both included.
    rows: tuple[tuple[int, int], ...] = ()
    #: Tuple of (start, end): the same intervals in seconds since the first row of the log.
    times: tuple[tuple[float, float], ...] = ()
    #: Options of `feasid.fit` that apply the remedy: see `gain`.
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)  #: The numbers of the message, by name.
    #: Share by which the remedy lowers the error on held-out segments, as the geometric mean over
    #: joints; 1 if no fit is possible without the remedy, None if it was not tested.
    gain: float | None = None
    #: "signals" if the columns alone show it, "dynamics" if it shows when a model of the robot is
    #: compared with the torques.
    evidence: str = "signals"

    def __str__(self) -> str:
        where = f" [{', '.join(self.joints)}]" if self.joints else ""
        gain = (
            "" if self.gain is None else f" (lowers the cross-validation error by {self.gain:.0%})"
        )
        if self.gain == 1.0:
            gain = " (without it no model can be fitted)"
        remedy = f"\n        -> {self.remedy}{gain}" if self.remedy else ""
        return f"{self.level:7} {self.code}{where}: {self.message}{remedy}"


@checked_methods
@dataclass(frozen=True, repr=False)
class Diagnosis(Displayed):
    """All findings about a log, the gravest first."""

    findings: tuple[Finding, ...]  #: The gravest first.
    samples: int  #: Rows of the log.
    duration: float = float("nan")  #: [s] and [Hz]; NaN when the log has no usable time.
    rate: float = float("nan")  #: See `duration`.
    notes: tuple[str, ...] = ()  #: How the log was prepared for the tests.
    table: str = ""  #: For several logs: their contributions and their differences.

    @property
    def ok(self) -> bool:
        """No error and no warning."""
        return all(f.level == "note" for f in self.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings to fix before fitting."""
        return tuple(f for f in self.findings if f.level == "error")

    @property
    def options(self) -> dict[str, Any]:
        """Options that lower the errors of `feasid.fit` on held-out segments."""
        return merge_options(f.options for f in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __contains__(self, code: object) -> bool:
        return any(f.code == code for f in self.findings)

    def frame(self) -> pd.DataFrame:
        """The findings as a table.

        Returns
        -------
        DataFrame
            level, code, joints, message, remedy, gain, rows and times; one row per finding.
        """
        import pandas as pd

        columns = ["level", "code", "joints", "message", "remedy", "gain", "rows", "times"]
        rows = [[getattr(f, c) for c in columns] for f in self.findings]
        return pd.DataFrame(rows, None, columns)

    def _headline(self) -> str:
        head = f"{self.samples} samples"
        if self.duration == self.duration:
            head += f", {self.duration:.4g} s at {self.rate:.4g} Hz"
        return head

    def explain(self) -> str:
        """All findings, each with its remedy."""
        count = {level: sum(f.level == level for f in self.findings) for level in LEVELS}
        counts = ", ".join(f"{n} {level}{'s' if n > 1 else ''}" for level, n in count.items() if n)
        head = f"{self._headline()}: {counts or 'nothing found'}"
        return "\n".join([head, *(str(f) for f in self.findings), *self.table.splitlines()])

    def display(self) -> Display:
        """A short display of the diagnosis."""
        count = {level: sum(f.level == level for f in self.findings) for level in LEVELS}
        wrong, doubtful, _ = count.values()
        more = "more: diagnosis.explain(), diagnosis.frame()"
        more += "; feasid.fit(log, robot, **diagnosis.options)" * bool(self.options)
        return Display(
            f"diagnosis of {self._headline()}",
            [
                Measure("errors", f"{wrong}: fix before fitting" if wrong else "0", met=not wrong),
                Measure("warnings", str(doubtful), met=not doubtful),
            ],
            [str(f) for f in self.findings if f.level != "note"],
            [str(f).splitlines()[0] for f in self.findings if f.level == "note"],
            more,
        )


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most severe findings first, those on columns before those on the model, then by gain.

    Of notes those on the model come first: a load says more than a gap in time.
    """

    def key(finding: Finding) -> tuple[int, bool, float]:
        lacks = finding.evidence == "dynamics" and not finding.columns
        level = LEVELS.index(finding.level)
        return level, lacks != (finding.level == "note"), -(finding.gain or 0.0)

    return tuple(sorted(findings, key=key))


def merge_options(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Options joined: mappings entry by entry, sequences end to end without repetitions."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                out[key] = {**(out.get(key) or {}), **value}
            elif isinstance(value, tuple):
                known = tuple(out.get(key) or ())
                out[key] = (*known, *(x for x in value if x not in known))
            else:
                out[key] = value
    return out
