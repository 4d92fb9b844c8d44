"""Mutants of certificates against what a reader holds: none may be taken for the reader's own.

Makes certificates of random robots (base parameters that can and cannot exist, models, fits,
corrections, with and without limits and ties), changes them, mends or finds their proofs again
where that is possible, and asks `feasid.parameters.feasibility.proof.binding.bind`. What is
accepted is judged without it: the file must hold for the second checker, its matrix must be the one
that Pinocchio's regressor gives, its data must have the log's moments, everything else must be what
was asked.
"""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pinocchio
from feasibility_problems import energy, planar, random_parameters, random_robot

import feasid
from benchmarks.second_checker import holds
from feasid.certificate import digest
from feasid.core.errors import FeasidError
from feasid.core.exact.numbers import shortest_text
from feasid.parameters.feasibility.check import _check_equations
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.correct import correct
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.proof.binding import HeldStatement, bind
from feasid.parameters.feasibility.proof.claim import Certificate, robot_fingerprint
from feasid.parameters.feasibility.proof.question import ExactData, Question

AGREES = 1e-7
"""Difference of coefficients from Pinocchio's and of moments, relative to the largest: least
squares of its regressor have eight digits."""

PER_READER = 150
"""Mutants of one reader's certificates, before another robot is made."""

TEN = ("Lxx", "Lxy", "Lxz", "Lyy", "Lyz", "Lzz", "lx", "ly", "lz", "m")


def pinocchio_regressor(robot, q, dq, ddq):
    """Torques by standard parameters, (samples * dof, n), of revolute trees with drive inertias."""
    model = pinocchio.Model()
    model.gravity.linear = np.asarray(robot.gravity)
    ids = {None: 0}
    for body in robot.bodies:
        joint = pinocchio.JointModelRevoluteUnaligned(*body.motion[:3, 0])
        place = pinocchio.SE3(np.asarray(body.rotation), np.asarray(body.position))
        ids[body.name] = model.addJoint(ids[body.parent], joint, place, body.name)
    data, out = model.createData(), []
    order = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]  # Pinocchio's: m, mc, Ixx Ixy Iyy Ixz Iyz Izz
    inertial = np.asarray(robot.inertial_columns)
    drives = [robot.drive_columns(k)["Ia"] for k in range(len(robot.drives))]
    for sample in zip(q, dq, ddq, strict=True):
        Y = np.array(pinocchio.computeJointTorqueRegressor(model, data, *sample))
        Y = Y.reshape(robot.dof, -1)
        row = np.zeros((robot.dof, robot.size))
        for i, columns in enumerate(inertial):
            row[:, columns] = Y[:, 10 * i : 10 * i + 10][:, order]
        for k, column in enumerate(drives):
            row[k, column] = sample[2][k]
        out.append(row)
    return np.vstack(out)


class Reader:
    """A robot, base parameters, a log, and the certificates of what a reader may hold of them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 4))
        self.robot = planar(rng, count) if seed % 3 == 0 else random_robot(rng, count)
        if seed % 2:
            self.robot = self.robot.with_joint_terms(friction=(), drive_inertia=True)
        self.base = feasid.base_parameters(self.robot)
        self.K = np.asarray(self.base.K, dtype=np.float64)
        self.delta = random_parameters(rng, self.robot)
        self.beta = self.base.values(self.delta)
        y, i = energy(rng, self.robot, self.base), 0
        i = int(np.argmax(np.abs(y * self.beta)))
        self.bad = self.beta.copy()
        self.bad[i] -= (1 + 10.0 ** rng.uniform(-3, 0)) * (y @ self.beta) / y[i]
        motion = rng.uniform(-2, 2, size=(3, 12 * self.robot.size, self.robot.dof))
        Y = pinocchio_regressor(self.robot, *motion)
        lead = [
            next(j for j in np.flatnonzero(r == 1) if (self.K[:, j] != 0).sum() == 1)
            for r in self.K
        ]
        self.truth = np.linalg.lstsq(Y[:, lead], Y, rcond=None)[0]
        torque = Y @ self.delta
        torque = torque + 0.3 * np.std(torque) * rng.normal(size=len(torque))
        self.Y, self.torque = Y[:, lead], torque
        Q, self.R = np.linalg.qr(self.Y)
        self.rho = Q.T @ torque
        self.bounds = {"mass": {"b0": (0.001, 500.0)}}
        if seed % 4 == 0:
            self.bounds["equal"] = [("b0", f"b{count - 1}")] if count > 1 else []
        self.cases = [case for case in self._cases() if case[1] is not None]

    def _cases(self):
        """Statement, certificate, and how to prove a changed statement."""
        robot, K = self.robot, self.K
        plain = feasible_set(robot)
        for beta, options in ((self.beta, {}), (self.bad, {}), (self.beta, self.bounds)):
            allowed = feasible_set(robot, **options)
            question = Question.from_doubles(robot, allowed, K, beta)
            yield self._case(question, None, prove(robot, allowed, K, beta), (K, beta))
        question = Question.from_doubles(robot, plain, np.eye(robot.size), self.delta)
        identity = np.eye(robot.size), self.delta
        yield self._case(question, None, prove(robot, plain, *identity), identity)
        open_question = Question.from_doubles(robot, plain, K, None)
        fit = feasible_least_squares(self.R, self.rho, self.base, plain)
        left = max(float(self.torque @ self.torque - self.rho @ self.rho), 0.0) ** 0.5
        yield self._case(open_question, (self.R, self.rho, left), fit.certify(left), None)
        near = correct(self.bad, self.base).optimality
        yield self._case(open_question, (np.eye(len(K)), self.bad), near, None)

    def _case(self, question, data, certificate, equations):
        held = HeldStatement(
            question, "file", None if data is None else ExactData.from_doubles(*data)
        )
        return held, certificate, equations, data

    def is_own(self, file, case) -> str:
        """Why a file is not about this case; empty when it is. Nothing of `binding` is used."""
        _, original, equations, data = case
        if not holds(file):
            return "the second checker refuses it"
        robot = self.robot
        terms = ("Ia",) if robot.drives else ()
        names = [[b.name, s] for b in robot.bodies for s in (*TEN, *terms)]
        if file["parameters"] != names or file["robot"]["digest"] != robot_fingerprint(robot):
            return "another robot"
        if file["consistency"] != "full" or float(Fraction(file["margin"])) != 0:
            return "consistency or margin"
        for key in ("ties", "constraints"):
            if file[key] != original.data[key]:
                return key
        limit = file.get("limit")
        arms = max([1e-3, *(float(np.linalg.norm(b.position)) for b in robot.bodies)])
        if limit and (limit["mass"] not in ("100000000", "10000000000", "1000000000000")):
            return "limit"
        if limit and (float(limit["length"]) < 9.9 * arms or limit["terms"] != limit["mass"]):
            return "limit"
        K = self.truth if equations is None or len(equations[0]) < robot.size else equations[0]
        shown = dense(file["matrix"], robot.size)
        if shown.shape != K.shape or np.abs(shown - K).max() > AGREES * np.abs(K).max():
            return "matrix"
        if ("data" in file) != (equations is None):
            return "claim"
        if equations is not None:
            own = [Fraction(repr(float(b))) for b in equations[1]]
            return "" if [Fraction(v) for v in file["values"]] == own else "values"
        return self._same_data(file["data"], data)

    def _same_data(self, shown, data) -> str:
        rows = np.column_stack([dense(shown["rows"], len(self.K)), floats(shown["target"])])
        if data[0] is self.R:  # moments of the log itself
            log = np.column_stack([self.Y, self.torque])
            own, rest = log.T @ log, data[2] ** 2
            own[-1, -1] = float(self.rho @ self.rho)
        else:
            own, rest = np.column_stack(data).T @ np.column_stack(data), 0.0
        sizes = np.sqrt(np.diag(own))
        other = rows.T @ rows
        if abs(float(Fraction(shown["rest"])) - rest) > 1e-11 * rest:
            return "rest"
        if (np.abs(other - own) > AGREES * np.outer(sizes, sizes)).any():
            return "data"
        return ""


def prove(robot, allowed, K, beta, margin=0.0):
    """The certificate for any equations; None where nothing is proved."""
    labels = [str(i) for i in range(len(K))]
    try:
        return _check_equations(robot, allowed, K, beta, labels, margin, None).certificate
    except (FeasidError, np.linalg.LinAlgError, ArithmeticError, ValueError):
        return None


def floats(items):
    return np.array([float(Fraction(x)) for x in items])


def dense(rows, columns):
    out = np.zeros((len(rows), columns))
    for line, row in zip(out, rows, strict=True):
        for j, value in row:
            line[j] = float(Fraction(value))
    return out


def times(number: str, factor: Fraction) -> str:
    return shortest_text(Fraction(number) * factor)


# -- mutations: each changes a file in place or returns another one; None where it does not apply


def permute(file, rng, reader, case):
    """Rows in another order, alone or with all that belongs to them."""
    order = rng.permutation(len(file["matrix"])).tolist()
    keys = [k for k in ("matrix", "values", "combination") if k in file]
    for key in keys[: int(rng.integers(1, len(keys) + 1))] if rng.random() < 0.5 else keys:
        file[key] = [file[key][i] for i in order]
    return file


def permute_values(file, rng, reader, case):
    """Rows under the values of others, proved again."""
    if case[2] is None:
        return None
    (K, beta), order = case[2], rng.permutation(len(case[2][1]))
    rows = K[order] if rng.random() < 0.5 else K
    return again(reader, rows, beta if rows is not K else beta[order], case)


def drop(file, rng, reader, case):
    """Without some rows: those without a multiplier, or proved again."""
    if case[2] is not None and rng.random() < 0.7:
        K, beta = case[2]
        kept = np.flatnonzero(rng.random(len(K)) < rng.uniform(0.1, 0.99))
        return again(reader, K[kept], beta[kept], case) if len(kept) else None
    if "combination" not in file:
        return None
    kept = [i for i, y in enumerate(file["combination"]) if Fraction(y)]
    for key in ("matrix", "values", "combination"):
        file[key] = [file[key][i] for i in kept]
    return file


def duplicate(file, rng, reader, case):
    """A row twice, with the same value or another one."""
    i = int(rng.integers(len(file["matrix"])))
    if case[2] is not None and rng.random() < 0.6:
        K, beta = case[2]
        value = beta[i] + rng.choice([0.0, 1e-9, 1.0])
        return again(reader, np.vstack([K, K[i]]), np.r_[beta, value], case)
    file["matrix"].append(file["matrix"][i])
    if "values" in file:
        file["values"].append(file["values"][i])
    if "combination" in file:
        file["combination"].append("0")
    return file


def rescale(file, rng, reader, case):
    """A row and its value times a factor, its multiplier divided by it."""
    i = int(rng.integers(len(file["matrix"])))
    factor = Fraction(int(rng.choice([2, 10, 1000, -1])))
    file["matrix"][i] = [[j, times(c, factor)] for j, c in file["matrix"][i]]
    if "values" in file:
        file["values"][i] = times(file["values"][i], factor)
    if "combination" in file:
        file["combination"][i] = times(file["combination"][i], 1 / factor)
    if "data" in file:
        rows = file["data"]["rows"]
        file["data"]["rows"] = [
            [[k, times(c, 1 / factor) if k == i else c] for k, c in row] for row in rows
        ]
    return file


def reduce_rank(file, rng, reader, case):
    """A row replaced by a combination of others, or all by single parameters."""
    if case[2] is None or len(case[2][0]) < 2:
        return None
    K, beta = (x.copy() for x in case[2])
    i, j = rng.choice(len(K), 2, replace=False)
    if rng.random() < 0.5:
        K[i], beta[i] = K[j] + (rng.random() < 0.5) * K[i], beta[j] + (rng.random() < 0.5) * beta[i]
    else:
        K = np.eye(K.shape[1])[rng.choice(K.shape[1], len(K), replace=False)]
    return again(reader, K, beta, case)


def nudge(file, rng, reader, case):
    """Coefficients of K moved by a share of themselves."""
    share = Fraction(repr(float(10.0 ** rng.uniform(-18, 0))))
    some = rng.random() < 0.5
    for row in file["matrix"]:
        for pair in row:
            if not some or rng.random() < 0.1:
                pair[1] = f"{float(times(pair[1], 1 + share).split('/')[0]):.17g}"
    return file


def add_rest(file, rng, reader, case):
    """A rest on both sides of a bound."""
    if "data" not in file:
        return None
    more = Fraction(repr(float(10.0 ** rng.uniform(-12, 8))))
    file["data"]["rest"] = shortest_text(Fraction(file["data"]["rest"]) + more)
    file["floor"] = shortest_text(Fraction(file["floor"]) + more)
    return file


def other_data(file, rng, reader, case):
    """Another log: other noise, other units, rows without entries, other signs."""
    if "data" not in file:
        return None
    data, way = file["data"], int(rng.integers(5))
    if way == 0:
        rho = case[3][1] * (1 + 10.0 ** rng.uniform(-10, 0) * rng.normal(size=len(case[3][1])))
        try:
            fit = feasible_least_squares(case[3][0], rho, reader.base, case[0].question.feasible)
        except FeasidError:
            return None
        found = fit.certify(*case[3][2:])
        return None if found is None else found.data
    if way == 1:  # units
        factor = Fraction(int(rng.choice([1000, 60, 2])))
        data["rows"] = [[[k, times(c, factor)] for k, c in row] for row in data["rows"]]
        data["target"] = [times(x, factor) for x in data["target"]]
        file["weights"] = [times(x, 1 / factor) for x in file["weights"]]
        file["floor"] = times(file["floor"], factor**2)
    elif way == 2:
        data["rows"] = [[] for _ in data["rows"]]
        file |= {"floor": "0", "weights": ["0"] * len(data["rows"]), "multipliers": []}
        file["tied"], file["limit"] = ["0"] * len(file["ties"]), None
    elif way == 3:  # a row more, which only the weights of nothing see
        data["rows"].append([[0, "1000"]])
        data["target"].append("-1000")
        file["weights"].append("0")
    else:
        order = rng.permutation(len(data["rows"])).tolist()
        data["rows"], data["target"], file["weights"] = (
            [items[i] for i in order] for items in (data["rows"], data["target"], file["weights"])
        )
    return file


def units(file, rng, reader, case):
    """Values in other units, and the point with them."""
    if "values" not in file or any(t["value"] != "0" for t in file["ties"]) or file["constraints"]:
        return None
    factor = Fraction(int(rng.choice([1000, 10, 2])))
    file["values"] = [times(v, factor) for v in file["values"]]
    if "point" in file:
        *numbers, over = file["point"]
        file["point"] = [*(times(x, factor) for x in numbers), over]
    return file


def change_value(file, rng, reader, case):
    """One value, by little or much, proved again."""
    if case[2] is None:
        return None
    K, beta = case[2][0], case[2][1].copy()
    i = int(rng.integers(len(beta)))
    way = int(rng.integers(4))
    beta[i] = [
        np.nextafter(beta[i], np.inf),
        beta[i] * (1 + 10.0 ** rng.uniform(-15, 0)),
        -beta[i],
        beta[i] - 1e-10,
    ][way]
    return again(reader, K, beta, case)


def add_tie(file, rng, reader, case):
    """Ties that nobody named: contradictory, or true of the point."""
    j = int(rng.integers(len(file["parameters"])))
    if "combination" in file and rng.random() < 0.5:
        file["ties"] += [{"name": "asked", "row": [[j, "1"]], "value": v} for v in ("1", "2")]
        file["tied"] = ["0"] * (len(file["ties"]) - 2) + ["1", "-1"]
        file["combination"], file["multipliers"] = ["0"] * len(file["matrix"]), []
        return file
    value = "1"
    if "point" in file:
        *numbers, over = map(Fraction, file["point"])
        value = shortest_text(numbers[j] / over)
    file["ties"].append({"name": "asked", "row": [[j, "1"]], "value": value})
    if "tied" in file:
        file["tied"].append("0")
    return file


def add_constraint(file, rng, reader, case):
    """A limit that nobody named, which holds; a mass that is too large, proved again."""
    if case[2] is not None and rng.random() < 0.5:
        bound = {"b0": (float(reader.delta[9] * rng.choice([0.5, 2, 1e3])), None)}
        return again(reader, *case[2], case, feasible_set(reader.robot, mass=bound))
    row = [[int(rng.integers(len(file["parameters"]))), "1"]]
    entry = {"name": "asked", "strict": False, "size": 1, "entries": [[0, 0, row, "1e9"]]}
    file["constraints"].append(entry)
    return file


def lose(file, rng, reader, case):
    """Without a tie or constraint that was asked for, or with another number in it."""
    some = [key for key in ("ties", "constraints") if file[key]]
    if not some:
        return None
    key = str(rng.choice(some))
    place = int(rng.integers(len(file[key])))
    if rng.random() < 0.5:
        gone = file[key].pop(place)
        if key == "ties" and "tied" in file:
            file["tied"].pop(place)
        return file if gone else None
    if key == "ties":
        file[key][place]["value"] = times(file[key][place]["value"], Fraction(2))
    else:
        file[key][place]["entries"][0][3] = times(file[key][place]["entries"][0][3], Fraction(2))
    return file


def margin(file, rng, reader, case):
    """A margin that nobody named: tiny, or so large that nothing has it."""
    if case[2] is not None and rng.random() < 0.5:
        return again(reader, *case[2], case, margin=float(rng.choice([1e-9, 1e6])))
    file["margin"] = str(rng.choice(["1e-300", "1e-12", "0.0000001"]))
    return file


def weaker(file, rng, reader, case):
    """The weaker consistency: what exists with the full one exists with it, too."""
    if "multipliers" in file:
        if case[2] is None:
            return None
        return again(reader, *case[2], case, feasible_set(reader.robot, consistency="semi"))
    file["consistency"] = "semi"
    return file


def limit(file, rng, reader, case):
    """Another limit, or one where none was."""
    if "limit" not in file:
        return None
    size = dict(file["limit"] or {"mass": "100000000", "length": "1", "terms": "100000000"})
    part = str(rng.choice(["mass", "length", "terms"]))
    low = {"mass": "100000001", "length": f"1e-{int(rng.integers(1, 300))}", "terms": "200000000"}
    file["limit"] = {**size, part: low[part]}
    return file


def rename(file, rng, reader, case):
    """Other names: of bodies, symbols, or the robot."""
    way = int(rng.integers(4))
    if way == 0:
        first, second = rng.choice(len(file["parameters"]), 2, replace=False)
        names = file["parameters"]
        names[first], names[second] = names[second], names[first]
    elif way == 1:
        file["robot"]["digest"] = "sha256 " + "0" * 64
    elif way == 2:
        file["robot"]["name"] = "another"
        file["robot"]["digest"] = file["robot"]["digest"][::-1]
    else:
        owners = sorted({owner for owner, _ in file["parameters"]})
        other = dict(zip(owners, [*owners[1:], owners[0]], strict=True))
        if len(owners) < 2 or any(len(o) != len(owners[0]) for o in owners):
            return None
        file["parameters"] = [[other[owner], symbol] for owner, symbol in file["parameters"]]
    return file


def other_robot(file, rng, reader, case):
    """Another robot's file under this robot's name and fingerprint."""
    stranger = reader.stranger
    _, certificate, *_ = stranger.cases[int(rng.integers(len(stranger.cases)))]
    found = json.loads(json.dumps(certificate.data))
    found["robot"] = file["robot"]
    return found


def swap(file, rng, reader, case):
    """Another certificate of the same robot."""
    others = [c for c in reader.cases if c is not case]
    return json.loads(json.dumps(others[int(rng.integers(len(others)))][1].data))


MUTATIONS = (
    permute, permute_values, drop, duplicate, rescale, reduce_rank, nudge, add_rest, other_data,
    units, change_value, add_tie, add_constraint, lose, margin, weaker, limit, rename,
    other_robot, swap,
)  # fmt: skip


def again(reader, K, beta, case, allowed=None, margin=0.0):
    """The proof of changed equations, or under other constraints."""
    found = prove(reader.robot, allowed or case[0].question.feasible, K, beta, margin)
    return None if found is None else found.data


def campaign(count: int, seed: int) -> Counter:
    """Counts of what became of so many mutants; raises on a false acceptance."""
    out: Counter = Counter()
    rng = np.random.default_rng(seed)
    previous, number = None, seed * 100_000
    while out["mutants"] < count:
        reader = Reader(number)
        number += 1
        for held, certificate, *_ in reader.cases:
            assert not bind(certificate, [held]).refused, number
        reader.stranger, previous = previous or Reader(number + 50_000), reader
        for _ in range(min(PER_READER, count - out["mutants"])):
            case = reader.cases[int(rng.integers(len(reader.cases)))]
            change = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
            file = change(json.loads(json.dumps(case[1].data)), rng, reader, case)
            if file is None:
                continue
            file["digest"] = digest(file)
            out.update(judged(reader, case, file, change.__name__))
    return out


def judged(reader, case, file, name: str) -> list[str]:
    """What became of one mutant."""
    try:
        binding = bind(Certificate(file), [case[0]])
    except FeasidError:
        return ["mutants", "refused by the checker"]
    if not binding.refused:
        wrong = reader.is_own(file, case)
        if wrong:
            raise AssertionError(f"{name}: accepted, but {wrong}: {json.dumps(file)[:2000]}")
        return ["mutants", "accepted, and the reader's own"]
    return ["mutants", f"refused by the binding: {name}"]
