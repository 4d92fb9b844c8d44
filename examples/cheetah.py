"""Why the bench does not tell what a gallop needs: the Cheetah 3 study, recomputed.

P. M. Wensing, G. Niemeyer and J.-J. E. Slotine, "A geometric characterization of observability in
inertial parameter identification", IJRR 2024, Sec. 9.3: a leg identified with the torso in a
stand predicts the bench perfectly and the galloping robot wrongly, because motions of the torso
show combinations of the first two links that no bench motion shows.

    pip install feasid                       # "feasid[plot]" for the figure
    python examples/cheetah.py [figure.png]

prints the counts of Table 5, what the bench leaves unknown, and Table 6 beside the published one,
and draws the singular values of the preprint's Figure 10. The leg's geometry is the paper's
(`datasets/cheetah3`). Masses, torso and gallop are not public and of this example's making, so
that counts and zeros must agree with the paper, and sizes of errors cannot.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from extras import need

import feasid
from feasid.parameters.identifiability.views import PAPER_SYMBOLS, symbol_rows
from feasid.robot.inertia import from_mass_com_inertia

DATA = Path(__file__).parents[1] / "datasets" / "cheetah3" / "leg.json"
LEG = json.loads(DATA.read_text())

LEGS = {"FR": (1, -1), "FL": (1, 1), "HR": (-1, -1), "HL": (-1, 1)}
"""Sign of each leg's place along x (forward) and y (left)."""

HIPS = (0.34, 0.13, 0.0)
"""Where the abduction axes start in the torso [m], up to signs."""

DOWN = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
"""A leg's base in the torso: its x axis points down, its z axis forward."""

MASSES = {"torso": 26.6, "abad": 1.6, "hip": 3.4, "knee": 0.6}
SIZES = {
    "torso": (0.6, 0.26, 0.2),
    "abad": (0.1, 0.1, 0.12),
    "hip": (0.34, 0.06, 0.06),
    "knee": (0.34, 0.04, 0.04),
}
ROTOR = (4e-5, 7e-5, 1e-4, 0.06)
"""A rotor's Lxx, Lzz [kg m^2], lz [kg m] and m [kg]."""

SAMPLES, RATE = 600, 200.0
STRIDE = 2.4
"""Strides per second."""

ROUNDING = 1e-9
"""Relative size of singular values that are rounding; those of the motion are above 1e-5."""


ZERO = 1e-8
"""Errors [N m, N] up to this are rounding of a motion with torques of hundreds."""


PUBLISHED = {
    "floating torso": ((0.0, 0.0, 0.0),) * 4,
    "fixed torso": ((0.0, 0.0, 0.0), (1.35, 2.39, 0.0), (7.40, 20.24, 4.71), (16.31, 12.40, 61.73)),
}
"""Table 6: the four groups of `Errors`."""


class Errors(NamedTuple):
    """RMS errors on the bench and in the gallop: FL joints, body torques and body forces."""

    bench: np.ndarray
    legs: np.ndarray
    torques: np.ndarray
    forces: np.ndarray


def body(name: str, rng: np.random.Generator) -> np.ndarray:
    """Ten parameters of a box that is not quite homogeneous."""
    mass, size = MASSES[name], np.array(SIZES[name])
    centre = size * rng.uniform(-0.2, 0.2, 3) + (0.4 * size if name in ("hip", "knee") else 0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)) * 0.1 + np.eye(3))[0]
    box = mass / 12 * np.diag((size**2).sum() - size**2)
    return from_mass_com_inertia(mass, centre, turn @ box @ turn.T)


def cheetah() -> feasid.Robot:
    """Torso and four legs with rotors, 13 bodies and 178 parameters."""
    rng = np.random.default_rng(3)
    bodies = [feasid.Body("torso", None, motion=np.eye(6), inertial=body("torso", rng))]
    for leg, (front, left) in LEGS.items():
        parent = "torso"
        for k, part in enumerate(LEG["bodies"]):
            side = np.array([1.0, -left, 1.0])  # the paper's leg is a right one
            rotor = part["rotor"]
            place, axis = side * part["position"], np.array(part["rotation"])
            spot, spin = side * rotor["position"], np.array(rotor["rotation"])
            if k == 0:
                hip = np.array(HIPS) * (front, left, 1)
                place, spot = hip + DOWN @ place, hip + DOWN @ spot
                axis, spin = DOWN @ axis, DOWN @ spin
            bodies.append(
                feasid.Body(
                    f"{leg}_{part['name']}",
                    parent,
                    axis,
                    place,
                    np.eye(6)[:, [2]],
                    inertial=body(part["name"], rng),
                    rotor=feasid.Rotor(rotor["gear_ratio"], spin, spot, values=np.array(ROTOR)),
                )
            )
            parent = bodies[-1].name
    return feasid.Robot(bodies, name="cheetah3")


def gallop(robot: feasid.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations of a transverse gallop, more or less.

    Each coordinate is a sum of three harmonics of the stride; legs are out of phase.
    """
    rng = np.random.default_rng(8)
    t = np.arange(SAMPLES)[:, None] / RATE
    shift = np.repeat([0.0, 0.1, 0.5, 0.6], 3)
    size = np.r_[[0.12, 0.25, 0.1, 0.05, 0.02, 0.06], np.tile([0.25, 0.6, 0.8], 4)]
    phase = np.r_[rng.uniform(0, 1, 6), shift + np.tile([0.3, 0.0, 0.2], 4)]
    q, dq, ddq = (np.zeros((SAMPLES, robot.dof)) for _ in range(3))
    for harmonic in (1, 2, 3):
        rate = 2 * np.pi * STRIDE * harmonic * rng.uniform(0.93, 1.07, robot.dof)
        angle = rate * t + 2 * np.pi * phase * harmonic
        share = size / harmonic**1.5
        q += share * np.sin(angle)
        dq += share * rate * np.cos(angle)
        ddq -= share * rate**2 * np.sin(angle)
    q[:, 7::3] += 0.6  # hips and knees are bent
    q[:, 8::3] -= 1.2
    return q, dq, ddq


def on_the_bench(motion: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The same leg motions with the torso in a stand."""
    held = tuple(x.copy() for x in motion)
    for x in held:
        x[:, :6] = 0.0
    return held


def leg_columns(robot: feasid.Robot, leg: str) -> np.ndarray:
    """Columns of a leg's bodies and rotors."""
    owners = [owner for owner, _ in robot.parameter_names]
    return np.array([k for k, owner in enumerate(owners) if owner.startswith(leg)])


def least_norm(y: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Pseudo-inverse solution in units of the columns."""
    size = np.linalg.norm(y, axis=0)
    size[size == 0] = 1.0
    return np.linalg.lstsq(y / size, tau, rcond=ROUNDING)[0] / size


def study() -> tuple[dict[str, int], Errors, Errors, dict[str, np.ndarray]]:
    """Counts, errors after floating and after fixed identification, singular values."""
    robot = cheetah()
    run = gallop(robot)
    bench = on_the_bench(run)
    truth, own = robot.values, leg_columns(robot, "FL")
    first = robot.rows[robot.joint_index("FL_abad")].start
    rows = slice(first, first + 3)
    y, y_bench = feasid.regressor(robot, *run), feasid.regressor(robot, *bench)[:, rows][:, :, own]
    tau, tau_bench = y @ truth, y_bench @ truth[own]
    floating = least_norm(y.reshape(-1, robot.size), tau.ravel())
    fixed = truth.copy()
    fixed[own] = least_norm(y_bench.reshape(-1, own.size), tau_bench.ravel())

    def errors(estimate: np.ndarray) -> Errors:
        rms = np.sqrt(((y @ estimate - tau) ** 2).mean(axis=0))
        there = np.sqrt(((y_bench @ estimate[own] - tau_bench) ** 2).mean(axis=0))
        return Errors(there, rms[rows], rms[:3], rms[3:6])

    leg_and_torso = np.r_[np.arange(10), own]
    free = y[:, [*range(6), *range(rows.start, rows.stop)]][:, :, leg_and_torso]
    spectra = {"fixed": spectrum(y_bench), "floating": spectrum(free)}
    counts = {k: int((s > ROUNDING * s[0]).sum()) for k, s in spectra.items()}
    others = [j for j in robot.joints if not j.startswith("FL")]
    told = feasid.base_parameters(robot)
    bench_told = feasid.base_parameters(
        robot, held=others, measured=[j for j in robot.joints if j.startswith("FL")]
    )
    counts |= {"per leg, floating": (told.size - 10) // 4, "per leg, fixed": bench_told.size}
    counts["unknown"] = bench_told.missing_for(told).size - 3 * counts["per leg, floating"] - 10
    return counts, errors(floating), errors(fixed), spectra


def spectrum(y: np.ndarray) -> np.ndarray:
    """Singular values with columns of unit size."""
    y = y.reshape(-1, y.shape[-1])
    size = np.linalg.norm(y, axis=0)
    return np.linalg.svd(y / np.where(size > 0, size, 1.0), compute_uv=False)


def draw(spectra: dict[str, np.ndarray], path: str) -> None:
    """Figure 10 of the preprint: where the singular values fall to rounding."""
    plt = need("matplotlib.pyplot", "plot")

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for (name, s), mark in zip(spectra.items(), ("s", "o"), strict=True):
        axes.semilogy(np.arange(1, len(s) + 1), s / s[0], mark, label=name, markersize=4)
    axes.axhline(ROUNDING, color="grey", linestyle=":", label="taken for zero")
    axes.set(xlabel="singular value", ylabel="relative size", title="one leg and the torso")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def table_5() -> list[str]:
    """What can be known of a leg's parameters, fixed and free, without and with gears."""
    robot = cheetah()
    others = [j for j in robot.joints if not j.startswith("FL")]
    measured = [j for j in robot.joints if j.startswith("FL")]
    fixed = feasid.base_parameters(robot, held=others, measured=measured, order="paper")
    free = feasid.base_parameters(robot, order="paper")
    at = [robot.joint_index(j) for j in measured]
    marks = [symbol_rows(base) for base in (fixed, free)]
    rows = [*PAPER_SYMBOLS, "rotor_Lzz"]
    return [f"{r:10}" + "   ".join(" ".join(m[r][k] for k in at) for m in marks) for r in rows]


def main(path: str | None = None) -> None:
    """Print the tables, draw the figure if a path is given."""
    counts, floating, fixed, spectra = study()
    told, unknown = (counts[f"per leg, {k}"] for k in ("floating", "fixed")), counts["unknown"]
    print("Table 5: a leg's parameters, fixed | free torso\n")
    print("\n".join(table_5()))
    print("\ncombinations per leg: {} floating, {} fixed (published: 24, 18)".format(*told))
    print(f"in the motions: {counts['floating']} with the torso's 10, {counts['fixed']}")
    print(f"the bench leaves {unknown} of the leg's combinations unknown\n")
    print(
        "Table 6: RMS errors. Masses and the gallop of the paper are not public: what must agree is"
    )
    print("where errors vanish; their sizes are those of other bodies in another gallop.\n")
    heads = ("identified with", "bench [N m]", "gallop: FL joints", "torques [N m]", "forces [N]")
    widths = (17, 13, 19, 20, 22)
    print("".join(head.ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip())
    for name, errors in (("floating torso", floating), ("fixed torso", fixed)):
        for label, parts in ((name, errors), ("  published", PUBLISHED[name])):
            cells = [" ".join(f"{x:.2f}" if x > ZERO else "0" for x in part) for part in parts]
            row = [label, *(f"[{cell}]" for cell in cells)]
            print("".join(c.ljust(width) for c, width in zip(row, widths, strict=True)).rstrip())
    if path:
        draw(spectra, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
