"""The 3-link robot of Yoshida and Khalil: test, proof and correction beside the published ones.

Table 1 of C. D. Sousa and R. Cortesao, "Physical feasibility of robot base inertial parameter
identification: a linear matrix inequality approach", IJRR 33(6), 2014.

    pip install feasid                       # nothing else is needed
    python examples/yoshida.py
"""

from __future__ import annotations

import numpy as np

import feasid

EPSILON = 1e-6  # the paper's margin on D(delta)

T1 = np.r_[
    [6.4, -5.48, 0.072, -0.087, 0.051, 5.6, 6.5, -0.00075],
    [-0.72, -0.0098, -0.0098, -0.00045, 0.72, 0.95, 0.015],
]
T2 = np.r_[6.2, T1[1:]]
PUBLISHED = np.r_[
    [6.200951, -5.479049, 0.071966, -0.086967, 0.050999, 5.6, 6.5, -0.00075],
    [-0.719049, -0.009819, -0.009817, -0.00045, 0.72, 0.949999, 0.014966],
]


def robot() -> feasid.Robot:
    """Joint 1 about y, joints 2 and 3 about z, joint 3 at 1 m along x; gravity along -y."""
    bodies = (
        feasid.Body("1", None, motion=[0, 1, 0, 0, 0, 0]),
        feasid.Body("2", "1", motion=[0, 0, 1, 0, 0, 0]),
        feasid.Body("3", "2", position=[1, 0, 0], motion=[0, 0, 1, 0, 0, 0]),
    )
    return feasid.Robot(bodies, gravity=(0, -9.81, 0))


def main() -> tuple[dict[str, object], dict[str, object]]:
    """Print and return ours and the published answers."""
    base = feasid.base_parameters(robot())
    t1 = feasid.check(T1, base, consistency="semi", margin=EPSILON)
    t2 = feasid.check(T2, base, consistency="semi", margin=EPSILON)
    correction = feasid.correct(T2, base, consistency="semi", margin=EPSILON)
    ours = {"t1": t1.status, "t2": t2.status, "distance": float(f"{correction.distance:.3g}")}
    published = {"t1": "feasible", "t2": "infeasible", "distance": 1.65e-3}

    print("                              ours      published")
    for key, value in ours.items():
        print(f"{key:24} {value!s:>14} {published[key]!s:>14}")
    usual = feasid.correct(T2, base, consistency="semi")
    least = float(np.sqrt(float(usual.optimality.data["floor"])))  # without any margin
    distances = {"proved least": least, "paper's margin": correction.distance}
    distances["margin of correct"] = usual.distance
    print("\ndistance of feasible parameters to t2")
    for what, far in distances.items():
        print(f"{what:24} {far:14.8f}")

    print(f"\nTable 1: {'t1':>22}{'t2':>14}{'t2 corrected':>16} | published")
    rows = zip(base.expressions, T1, T2, correction.beta, PUBLISHED, strict=True)
    for label, one, two, mine, theirs in rows:
        print(f"{label:24}{one:8.5g}{two:14.5g}{mine:16.6f} | {theirs:9.6f}")
    away = np.abs(correction.beta - PUBLISHED)
    print(f"largest difference {away.max():.1e}; the paper's solver had a tolerance of 1e-7")
    print("\nproofs:", t1.certificate.verify(), "/", t2.certificate.verify(), sep="\n  ")
    return (
        {**ours, "corrected": correction.beta, "distances": distances},
        {**published, "corrected": PUBLISHED},
    )


if __name__ == "__main__":
    main()
