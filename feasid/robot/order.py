"""The order of a robot's bodies: parents first, otherwise as given."""

from __future__ import annotations

import heapq

from feasid.errors import DescriptionError, did_you_mean
from feasid.robot.parts import Body


def parents_first(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
    """Sort bodies so that parents come first and the order is otherwise kept.

    Raises
    ------
    DescriptionError
        Names bodies or joints that are doubled, have an unknown parent or form a cycle.
    """
    if not bodies:
        raise DescriptionError("a robot needs at least one body that moves")
    for kind in ("name", "joint"):
        names = [getattr(b, kind) for b in bodies]
        if len(set(names)) < len(names):
            doubled = sorted({n for n in names if names.count(n) > 1})
            raise DescriptionError(f"two bodies have the same {kind}: {doubled}")
    known = {b.name for b in bodies}
    for body in bodies:
        if body.parent is not None and body.parent not in known:
            hint = did_you_mean(body.parent, known)
            raise DescriptionError(f"body {body.name!r} has unknown parent {body.parent!r}{hint}")
    index = {body.name: i for i, body in enumerate(bodies)}
    below: dict[str, list[int]] = {}
    for i, body in enumerate(bodies):
        if body.parent is not None:
            below.setdefault(body.parent, []).append(i)
    ready = [i for i, body in enumerate(bodies) if body.parent is None]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for child in below.get(bodies[i].name, ()):
            heapq.heappush(ready, child)
    if len(order) < len(bodies):
        left = sorted(set(index) - {bodies[i].name for i in order})
        raise DescriptionError(f"bodies form a cycle: {left}")
    return tuple(bodies[i] for i in order)
