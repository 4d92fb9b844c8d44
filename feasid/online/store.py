"""What is remembered of the equations: all of them, the last ones, or all with fading weights.

Triangles of blocks of rows, combined by Householder reflections. A window is a ring of blocks, over
which a binary tree keeps the triangles of neighbours: a new block takes the oldest one's place and
renews its ancestors, so that nothing is ever subtracted, errors do not add up, and every block
costs the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from feasid.core.arrays import Array
from feasid.reduction.householder import absorb, stack

Triangles = list[Array]


class Store(Protocol):
    """Remembers rows."""

    @property
    def count(self) -> float:
        """Sum of the rows' weights."""

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take rows in, each ``age`` samples old, when `samples` samples have passed."""

    def clear(self) -> None:
        """Forget everything."""

    def triangles(self) -> Triangles:
        """Triangles per joint of [Y | tau], upper triangular."""


def _empty(sizes: Sequence[int]) -> Triangles:
    return [np.zeros((k, k), order="F") for k in sizes]


def _absorbed(triangles: Triangles, rows: Sequence[Array]) -> None:
    for triangle, block in zip(triangles, rows, strict=True):
        if block.shape[1]:
            absorb(triangle, np.array(block, order="C").T)


class Fading:
    """All rows; a row's square counts ``factor ** samples`` after so many samples; 1 keeps all."""

    def __init__(self, sizes: Sequence[int], factor: float) -> None:
        self._sizes, self.factor = sizes, factor
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._triangles, self._count = _empty(self._sizes), 0.0

    @property
    def count(self) -> float:
        """Sum of the rows' weights."""
        return self._count

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take rows in."""
        faded = self.factor**samples
        for triangle in self._triangles:
            triangle *= np.sqrt(faded)
        weights = self.factor ** age.astype(np.float64)
        _absorbed(self._triangles, [block * np.sqrt(weights) for block in rows])
        self._count = faded * self._count + float(weights.sum())

    def triangles(self) -> Triangles:
        """Per joint."""
        return [np.triu(t) for t in self._triangles]


class SlidingWindow:
    """The last blocks, each of weight one."""

    def __init__(self, sizes: Sequence[int], blocks: int) -> None:
        self._sizes, self.blocks = sizes, blocks
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._leaves = 1 << max(self.blocks - 1, 0).bit_length()
        self._tree: list[Triangles | None] = [None] * (2 * self._leaves)
        self._counts = [0] * self.blocks
        self._next = 0
        self.filled = 0

    @property
    def count(self) -> float:
        """Rows in the window."""
        return float(sum(self._counts))

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take a block's rows in; the oldest block leaves."""
        leaf = _empty(self._sizes)
        _absorbed(leaf, rows)
        self._counts[self._next] = len(age)
        at = self._leaves + self._next
        self._tree[at] = leaf
        while at > 1:
            at //= 2
            left, right = self._tree[2 * at], self._tree[2 * at + 1]
            if left is None or right is None:
                self._tree[at] = left if right is None else right
            else:
                self._tree[at] = [stack(a, b) for a, b in zip(left, right, strict=True)]
        self._next = (self._next + 1) % self.blocks
        self.filled = min(self.filled + 1, self.blocks)

    def triangles(self) -> Triangles:
        """Per joint."""
        root = self._tree[1]
        return [np.triu(t) for t in (_empty(self._sizes) if root is None else root)]
