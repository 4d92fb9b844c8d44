"""Certificates as objects, and the fingerprint by which they name a robot."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feasid import certificate as checker
from feasid.core import files
from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.errors import CertificateError
from feasid.robot.description import Robot


@checked
@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that parameters are feasible or infeasible, or that no feasible ones fit better."""

    data: dict[str, Any]  #: Content of the file; see ``docs/certificates.md``.
    #: Constraints that were asked for and are no part of it, because they are not affine.
    outside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            self.data["claim"], len(self.data["parameters"]), self.limit
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise CertificateError(f"this is not a certificate: {error!r}") from None

    @property
    def claim(self) -> str:
        """The proved claim: "feasible", "infeasible", "boundary" or "bound"."""
        return str(self.data["claim"])

    @property
    def limit(self) -> dict[str, float] | None:
        """Mass [kg], length [m] and joint terms up to which the proof holds; None without limit.
        Proofs of feasibility have no limit.
        """
        limit = self.data.get("limit")
        return {k: float(checker.exact(v)) for k, v in limit.items()} if limit else None

    def verify(self) -> str:
        """Check the proof in exact rational arithmetic, without a solver, and return what it
        proves.

        Returns
        -------
        str

        Raises
        ------
        CertificateError
            The certificate does not prove its claim.
        """
        try:
            proved = checker.verify(self.data)
        except ValueError as error:
            raise CertificateError(f"the certificate does not hold: {error}") from error
        others = [f"outside: {name}: kept in floating point, not affine" for name in self.outside]
        return "\n".join([proved, *others])

    def holds(self) -> bool:
        """Whether `verify` succeeds.

        Returns
        -------
        bool
        """
        try:
            self.verify()
        except CertificateError:
            return False
        return True

    @files.document_output
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write as JSON, for ``feasid verify``."""
        files.write_atomically(path, json.dumps(self.data, indent=1).encode(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate that is as it was written; its proof is not checked before `verify`.

        Parameters
        ----------
        path : path

        Returns
        -------
        Certificate

        Raises
        ------
        InputError
            The file does not exist, cannot be read, or is larger than the limit of certificates.
        CertificateError
            The file is not a certificate of this format, or was changed after it was written.
        """
        content = files.read_whole(path, checker.LARGEST_FILE)
        try:
            data = json.loads(content, object_pairs_hook=checker.unique)
            if (known := data["format"]) != checker.FORMAT:
                raise ValueError(f"its format is {known!r}; this feasid reads {checker.FORMAT!r}")
            if data["digest"] != checker.digest(data):
                raise ValueError("something was changed after writing: its digest does not match")
            return cls(data)
        except (ValueError, LookupError, TypeError, RecursionError, CertificateError) as error:
            lacks = "it lacks " if isinstance(error, KeyError) else ""
            why = checker.BINARY if isinstance(error, UnicodeDecodeError) else f"{lacks}{error}"
            raise CertificateError(f"{path} is no certificate: {why}", path=str(path)) from error

    def __repr__(self) -> str:
        return (
            f"<Certificate: {self.claim} under {self.data['consistency']} consistency, "
            f"{len(self.data['parameters'])} parameters>"
        )


ALIAS = re.compile(r".*~[0-9a-f]{16}")


def certificate_name(name: str) -> str:
    """The name used in a certificate: the given one, or an alias if the checker does not accept it.

    The alias is the start of the name, escaped, with a digest of the whole, so that two names never
    share one; a name that looks like an alias gets one, too.
    """
    if len(name) <= checker.LONGEST_NAME and name.isprintable() and not ALIAS.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{ascii(name)[1:-1][:NAME_START]}~{digest[:16]}"


NAME_START = 60  #: Characters of a name at the start of its alias.


def robot_fingerprint(robot: Robot) -> str:
    """Fingerprint of what decides a robot's base parameters: geometry, gravity and joint terms."""
    content = {
        "gravity": [repr(float(g)) for g in robot.gravity],
        "parameters": robot.parameter_names,
        "bodies": [
            {
                "parent": body.parent,
                "pose": _printed_numbers(body.rotation, body.position, body.motion),
                "rotor": body.rotor
                and [
                    repr(float(body.rotor.gear)),
                    _printed_numbers(body.rotor.rotation, body.rotor.position),
                ],
            }
            for body in robot.bodies
        ],
        "drives": [
            [d.name, sorted((j, repr(float(c))) for j, c in d.coupling.items())]
            for d in robot.drives
        ],
    }
    if not robot.is_tree:
        content["ties"] = robot.constraint_texts
    return "sha256 " + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _printed_numbers(*arrays: Array) -> list[str]:
    return [repr(float(x) + 0.0) for array in arrays for x in np.ravel(array)]
