"""Random mechanisms against their exact reduced row echelon form over a prime field.

Count; and, unless there is a tilt or offset so tiny that its square is rounding, leading
parameters, status of every parameter, which entries of K vanish and every coefficient that is a
simple fraction: exact, or an error, or a warning, never silently wrong. Screw joints, joints of
several degrees of freedom, nonholonomic ones, rotors, drives of one and of several joints, measured
subsets, held joints, rest, offsets and tilts from 1e-2 to 1e-9, millimetres to kilometres.

    python -m benchmarks.echelon --first 1000 --count 10000
"""

import argparse
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from benchmarks.mechanisms import (
    exact_base,
    random_mechanism,
    rational_rotation,
    residue,
    tilted,
    turned_by_45_degrees,
)
from feasid.core.errors import FeasidError, RankError
from feasid.parameters.identifiability.base import base_parameters
from feasid.parameters.identifiability.parameters import ALONE, COMBINED, NEVER

HARMLESS_WARNED = 0.01  # share of harmless mechanisms that may be warned of

LARGEST_REFUSED = 0.03  # share that may be refused instead of answered


@dataclass
class Case:
    """A mechanism, a question about it, and whether a tiny feature decides the answer."""

    seed: int
    mechanism: object
    measured: list | None = None
    held: list = field(default_factory=list)
    static: bool = False
    scale: float = 1.0
    tiny: bool = False
    decides: bool = False

    def leading(self):
        return self.exact()[0]

    def exact(self):
        return exact_base(self.mechanism, self.seed, self.static, self.measured, self.held)


def random_case(seed):
    rng = np.random.default_rng([40, seed])
    mechanism = random_mechanism(rng, largest=8)
    case = Case(seed, mechanism, scale=float(rng.choice([1e-3, 1.0, 1.0, 1e3])))
    n, draw = len(mechanism.joints), rng.random()
    if draw < 0.3:
        case.measured = sorted(rng.choice(n, rng.integers(1, n + 1), replace=False).tolist())
    if draw < 0.15:
        case.held = sorted(rng.choice(n, rng.integers(0, n), replace=False).tolist())
    case.static = bool(rng.random() < 0.15)
    joint = mechanism.joints[int(rng.integers(n))]
    draw = rng.random()
    if draw < 0.15:
        joint.rotation = turned_by_45_degrees(rational_rotation(rng, True))
    elif draw < 0.4:
        case.tiny, before = True, case.leading()
        size = 10.0 ** -rng.uniform(2, 9)
        if rng.random() < 0.6:
            joint.rotation = tilted(joint.rotation, int(2 / size))
        else:
            joint.position[int(rng.integers(3))] += Fraction(int(size * 10**12), 10**12)
        case.decides = case.leading() != before
    return case


def statuses(leading, exact):
    """What can be known of each parameter, from the exact K."""
    out = [NEVER if not column.any() else COMBINED for column in exact.T]
    for row, lead in zip(exact, leading, strict=True):
        out[lead] = ALONE if np.count_nonzero(row) == 1 else COMBINED
    return tuple(out)


def outcome(case):
    """Exact, refused, warned (and wrong) or wrong; and whether there was a warning."""
    mechanism, names = case.mechanism, case.mechanism.robot().joints
    try:
        base = base_parameters(
            mechanism.robot(case.scale),
            measured=None if case.measured is None else [names[j] for j in case.measured],
            held=[names[j] for j in case.held],
            static=case.static,
        )
        k = base.matrix.toarray()
    except RankError:
        return "refused", True
    except FeasidError as refused:
        if "cannot be held" not in str(refused):
            raise
        return "not covered", False
    leading, exact = case.exact()
    same = base.size == len(leading)
    if same and not case.tiny:  # else coefficients and what leads may be smaller than rounding
        same = base.independent.tolist() == leading
        same &= base.status == statuses(leading, exact) and bool(((k != 0) == (exact != 0)).all())
        if case.scale == 1.0:
            known = ((r, c, residue(k[r, c])) for r, c in zip(*k.nonzero(), strict=True))
            same &= all(v is None or v == exact[r, c] for r, c, v in known)
    warned = bool(base.warnings)
    return ("exact" if same else "warned" if warned else "wrong"), warned


def count_outcomes(seeds):
    tally, harmless, needless = Counter(), 0, 0
    for seed in seeds:
        case = random_case(seed)
        found, warned = outcome(case)
        tally[found] += 1
        assert found != "wrong", seed
        if not case.decides and found != "not covered":
            harmless += 1
            needless += warned
    return tally, harmless, needless


def main():
    """Print how many of the mechanisms had which outcome."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--count", type=int, default=1000, help="number of mechanisms")
    given = parser.parse_args()
    tally, harmless, needless = count_outcomes(range(given.first, given.first + given.count))
    print(dict(tally), f"{needless} of {harmless} harmless warned")


if __name__ == "__main__":
    main()
