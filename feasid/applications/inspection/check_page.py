"""A page of checked description files: links in space, and what is wrong with which.

Robots stand in their files' home poses. Nothing but the files is opened, and no robot is built, so
that a file with infeasible links, or with joints that are not supported, can be drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from feasid.applications.inspection import file_check
from feasid.applications.inspection.file_check import FileCheck
from feasid.applications.inspection.judge import principal_moments
from feasid.core.errors import FeasidError
from feasid.core.files import Name, check_writable, write_atomically
from feasid.results.report.robots import PlacedMass, RobotView, view_of_masses
from feasid.results.report.template import page_environment, render_page
from feasid.robot.formats.description import NeedsCompilerError
from feasid.robot.inertia import rotational_inertia, to_mass_com_inertia

WRITTEN, CURED = "as in the file", "with the closest consistent inertias"  #: Titles of views.


def write_check_page(
    results: Sequence[tuple[str, FileCheck | FeasidError]], path: Name, *, overwrite: bool = False
) -> None:
    """Write one page of these files, each with its path, and its check or why it was not read."""
    check_writable(path, overwrite=overwrite)
    environment = page_environment()
    files: list[dict[str, Any]] = []
    for name, result in results:
        if isinstance(result, FeasidError):
            files.append({"path": name, "error": str(result), "wrong": ()})
            continue
        # Names stand at centres of mass: joints of links that are fixed to each other coincide.
        views = [
            {**vars(view), "impossible": [{**b, "joint": b["centre"]} for b in view.impossible]}
            for view in _views(result)
        ]
        files.append({"path": name, "check": result, "views": views, "wrong": result.infeasible})
    # What cannot be read first, then the infeasible; others stay in the order of the caller.
    files.sort(key=lambda file: ("error" not in file, not file["wrong"]))
    page = render_page(environment, "check.html", files=files, words=file_check,
                       principal_moments=principal_moments)  # fmt: skip
    write_atomically(path, page, overwrite=overwrite)


def _views(check: FileCheck) -> Iterator[RobotView]:
    """The robot as the file describes it, and with the closest possible inertias."""
    # Poses of links at home, and lines from links to their parents.
    world = check.description.world
    frames, lines = {world: (np.eye(3), np.zeros(3))}, []
    for link in check.description.parents_first():
        rotation, position = frames[link.parent or world]
        place = position + rotation @ link.home.position
        frames[link.name] = rotation @ link.home.rotation, place
        lines.append([place, position])
    nearest = {r.link.name: r.closest_possible_inertia() for r in check.infeasible}
    for title in (WRITTEN, CURED) if any(nearest.values()) else (WRITTEN,):
        masses = []
        for k, link in enumerate(check.description.links):
            try:
                ten = link.parameters
            except NeedsCompilerError:
                continue
            if ten is None or not ten.any():
                continue
            mass, com, tensor = to_mass_com_inertia(ten) if ten[9] else (0.0, link.com, np.eye(3))
            cure = nearest.get(link.name)
            if title == CURED and cure is not None:
                # As in the file, moments are about the centre of mass in axes of their own.
                turn = np.eye(3) if link.place is None else link.place.rotation
                tensor = turn @ rotational_inertia([*cure.moments, 0, 0, 0, 0]) @ turn.T
                mass, com = cure.mass, link.com
            rotation, position = frames[link.name]
            masses.append(PlacedMass(link.name, float(mass), com, tensor, rotation, position, k))
        yield view_of_masses(title, np.array(lines), masses)
