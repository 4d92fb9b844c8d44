"""Base parameters at a glance: how many, how sure, and which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from feasid.core.display import Display, Measure
from feasid.identifiability.tables import ALONE, COMBINED, NEVER

if TYPE_CHECKING:
    from feasid.identifiability.base import BaseParameters


def display(base: BaseParameters) -> Display:
    """Count, check and the combinations themselves, as many as fit."""
    count = {kind: base.status.count(kind) for kind in (ALONE, COMBINED, NEVER)}
    given, unsure = base.robot.size - base.unknowns, base.check.unconfirmed
    what = "unknown parameters" if given else "parameters"
    known = f"{count[ALONE]} known alone, {count[COMBINED]} in sums, {count[NEVER]} never"
    said = f"leave {', '.join(unsure)} open" if unsure else "confirm the count"
    measures = [
        Measure("parameters", known + (f", {given} given" if given else "")),
        Measure("random motions", said, "confirmed", not unsure),
    ]
    if base.snapped:
        measures.append(Measure("rounded geometry", f"{len(base.snapped)} taken as exact"))
    return Display(
        f"base parameters of {base.robot.name!r}: {base.size} of {base.unknowns} {what}",
        measures,
        base.warnings,
        base.listing().splitlines(),
        "more: base.listing(), base.table(), base.explain('body.m'), base.K",
    )
