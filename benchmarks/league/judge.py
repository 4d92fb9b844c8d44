"""The judge: what an answer is worth. Nothing a participant filters or weights enters here."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import feasid
from benchmarks.files import Client, rms, truth_client, windows_of
from benchmarks.league.participants.entry import PER_JOINT, TERMS, urdf_with
from benchmarks.league.tasks import Task
from benchmarks.worlds import World, efficiency
from benchmarks.worlds.judge import COVERAGE_DEVIATIONS, TORQUE_CUTOFF, low_pass, score
from benchmarks.worlds.simulation import compile_model, joint_order

SYMBOLS = ("m", "lx", "ly", "lz", "Lxx", "Lxy", "Lyy", "Lxz", "Lyz", "Lzz", *TERMS)
MARGIN = 0.2
"""Ends of each run of a real log that are not judged [s]: the filter's own settling."""
ROUNDING = 1e-6
"""Share of the largest moment that a solver's tolerance may lack; figaroh lacked 4e-10 once."""
WINDOWS = 24
"""Rollouts of .3 s on each world's test log."""
NAMEABLE = ("gain", "tilt", "zeros", "cable", "late", "jitter", "drift", "load_friction",
            "stribeck", "ripple", "elastic", "backlash", "quantised", "payload")  # fmt: skip
"""Faults to be named; the others are conditions of the log or of the description."""
NEGATIVE = "negative armature"
"""Start of the judge's own words in results of 2026-11-27 and before, of models that were not
given to the compiler."""
HONEST_RATIO = 2.0
"""Error over the truth's up to which a model may be called good, and must not be called useless."""


def is_rejected(found: dict[str, Any]) -> bool:
    """Whether MuJoCo's compiler rejects the model."""
    said = found.get("model", "accepted")
    return said not in ("accepted", "none given") and not said.startswith(NEGATIVE)


def is_negative(found: dict[str, Any]) -> bool:
    """Whether the judge names a negative joint term."""
    return "negative" in found or found.get("model", "").startswith(NEGATIVE)


def judge_answer(task: Task, folder: Path) -> dict[str, Any]:
    """Figures of the answer in this folder; raises `ValueError` for what is no answer."""
    answer = json.loads((folder / "answer.json").read_text())
    torque = pd.read_csv(folder / "torque.csv")[[f"tau_{j}" for j in task.joints]].to_numpy()
    if torque.shape != task.measured.shape or not np.isfinite(torque).all():
        raise ValueError(f"torque.csv holds no {task.measured.shape[0]} finite rows of the joints")
    out: dict[str, Any] = {k: answer[k] for k in ("verdict", "version") if answer.get(k)}
    model = answer.get("parameters")
    compiled, words = compile_answer(task, answer) if model else (None, {"model": "none given"})
    out |= words
    if task.world is None:
        return out | {"error": log_error(task, torque)}
    scored = score(task.world, torque)
    out |= {"error": scored.error, "ratio": scored.ratio, "credible": scored.credible}
    if task.track in "DX":
        found = sorted(set(answer.get("found", ())) & set(NAMEABLE))
        wrong = scored.ratio > HONEST_RATIO
        honest = {"good": not wrong, "useless": wrong}.get(answer.get("verdict"), True)
        return out | {"found": found, "honest": honest if "verdict" in out else None}
    if model is not None and task.track == "B":
        out |= parameter_figures(task, answer)
    if compiled is not None and task.track == "B":
        windows, best = true_rollouts(task.world)
        offset = np.array([model[j][-1] for j in task.joints])
        out["rollout"] = rms(compiled, windows, "measured", less=offset) / best
    return out


@lru_cache(maxsize=1)
def true_rollouts(world: World) -> tuple[list, float]:
    """Windows of the test log, and the error of the truth's own rollouts from them [mrad]."""
    windows = windows_of(world, WINDOWS)
    return windows, rms(truth_client(world), windows, "measured")


def log_error(task: Task, torque: np.ndarray) -> float:
    """Error over the measured torque, both filtered by the judge in each run; of a real log."""
    off = size = 0.0
    for _, part in task.test.groupby("run", sort=False):
        rows, t = part.index.to_numpy(), part["t"].to_numpy()
        rate = 1 / (t[1] - t[0])
        kept = slice(round(MARGIN * rate), -round(MARGIN * rate))
        measured = low_pass(task.measured[rows], TORQUE_CUTOFF, rate)[kept]
        off += float(np.sum((low_pass(torque[rows], TORQUE_CUTOFF, rate)[kept] - measured) ** 2))
        size += float(np.sum(measured**2))
    return float(np.sqrt(off / size))


def parameter_figures(task: Task, answer: dict[str, Any]) -> dict[str, float]:
    """Error over the Cramer-Rao bound, and the share of 95 % intervals that hold the truth."""
    true = task.world.truth.robot
    bodies = {b.name: b.joint for b in true.bodies}
    places = [
        task.joints.index(bodies[body]) * PER_JOINT + SYMBOLS.index(symbol)
        for body, symbol in true.parameter_names
    ]
    x = np.concatenate([answer["parameters"][j] for j in task.joints])[places]
    out = {"efficiency": efficiency(task.world, x - true.values)}
    if answer.get("covariance") is not None:
        covariance = np.array(answer["covariance"])[np.ix_(places, places)]
        K = feasid.base_parameters(true).K
        deviations = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", K, covariance, K), 0.0))
        inside = np.abs(K @ (x - true.values)) < COVERAGE_DEVIATIONS * deviations
        out["coverage"] = float(np.mean(inside))
    return out


def compile_answer(task: Task, answer: dict[str, Any]) -> tuple[Client | None, dict[str, str]]:
    """The answer's bodies and joint terms in MuJoCo; under "model" what its compiler says.

    Under "negative" the judge names a joint with a negative armature, damping or friction loss:
    MuJoCo accepts those, and they are simulated as they are. Bodies that are refused by no more
    than a solver's tolerance are simulated with principal moments that are larger by `ROUNDING`,
    and remain refused.
    """
    values, refusal = answer["parameters"], ""
    terms = answer.get("actuators") or {j: values[j][10:13] for j in task.joints}
    table = np.array([terms[j] for j in task.joints])
    negative = [j for j, row in zip(task.joints, table, strict=True) if (row < 0).any()]
    words = {"negative": f"armature, damping or friction loss at {negative[0]}"} if negative else {}
    for share in (0.0, ROUNDING):
        bodies = {j: np.array(values[j][:10]) for j in task.joints}
        for x in bodies.values():
            x[[4, 6, 9]] += share * x[[4, 6, 9]].max()
        try:
            model = compile_model(ET.fromstring(urdf_with(task.robot, bodies)))
        except (ValueError, ZeroDivisionError) as error:
            refusal = refusal or str(error).splitlines()[0]
            continue
        rows = joint_order(model, task.joints)
        model.dof_armature[rows], model.dof_damping[rows], model.dof_frictionloss[rows] = table.T
        return Client(model, task.joints), {"model": refusal or "accepted", **words}
    return None, {"model": refusal, **words}
