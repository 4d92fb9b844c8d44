"""Routines as C99: a source and a header, no allocation, with names, units and a test vector.

If there is a compiler, the same code is compiled and called from Python (`compile_routines`).
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_letters, digits
from typing import Literal

import numpy as np

import feasid
from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.files import check_writable, write_together
from feasid.core.text import quote
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.codegen.routine import (
    MOTION,
    ROUTINES,
    BaseParameterModel,
    Language,
    Routine,
    StandardParameterModel,
    python_function,
    statements,
)
from feasid.robot.description import Robot

C_HELPERS = {
    "sign": "return (T)((x > 0) - (x < 0));",
    "inverse": "return 1 / x;",
    "sinc": "const T r = sqrtF(x); return x > 0 ? sinF(r) / r : 1;",
    "sinc_rest": "return x < (T)0.1 ? (1 - x / 20 * (1 - x / 42 * (1 - x / 72 * (1 - x / 110 * "
    "(1 - x / 156))))) / 6 : (1 - sinF(sqrtF(x)) / sqrtF(x)) / x;",
}
"""Bodies of functions that ``math.h`` lacks; T is replaced by the type, F by the suffix of its
functions."""

MEANING = {
    "inverse_dynamics": ("tau", "joint torques of a motion, friction included [N m or N]"),
    "gravity": ("tau", "torques that hold the bodies still, without friction [N m or N]"),
    "friction": ("tau", "torques of friction and springs [N m or N]"),
    "mass_matrix": ("M", "mass matrix, row by row, drive inertia included"),
    "forward_dynamics": ("out", "accelerations that torques cause, friction included"),
    "regressor": ("Y", "base regressor, row by row: torques = Y * base parameters"),
    "observer": (
        "out",
        "external torques, thresholds beyond which they are contact, and the state to pass on; "
        "at rest the state is zero",
    ),
}

COMMENT_CHARACTERS = frozenset(ascii_letters + digits + " .,:;+-*/=()[]{}<>|&^%$#@!~_'\"")
"""Characters that texts from outside, such as names of joints, may have in a comment."""

FILE_CHARACTERS = " ._+-"
"""Characters other than letters and digits in the name of a file that C code includes."""

TEST_SEED = 0  #: Seed of the states in the written self-test: the same model gives the same code.

PRECISIONS = {"double": 1e-12, "float": 1e-4}
"""Largest deviation that the written self-test allows, relative to the largest output: rounding of
a few hundred operations, with a margin for compilers that fuse them."""


@dataclass(frozen=True, eq=False)
class CFunctions:
    """Routines as functions in C, which need nothing but ``math.h``."""

    routines: tuple[Routine, ...]
    name: str
    precision: str = "double"

    @cached_property
    def language(self) -> Language:
        """Syntax of numbers and functions."""
        single = self.precision == "float"

        def number(value: float) -> str:
            text = f"{value:.9g}" if single else repr(value)
            # A number without a point or an exponent would be an integer.
            text = text if any(c in text for c in ".e") else f"{text}.0"
            return f"{text}f" if single else text

        def function(name: str, x: str) -> str:
            if name in C_HELPERS:
                return f"{self.name}_{name}({x})"
            return f"{'fabs' if name == 'abs' else name}{'f' if single else ''}({x})"

        return Language(number, function)

    @cached_property
    def source_text(self) -> str:
        """The functions."""
        parts = ["#include <math.h>\n"]
        used = {n.kind for r in self.routines for n in r.needed_expressions}
        for kind in filter(used.__contains__, C_HELPERS):
            t, suffix = self.precision, "f" if self.precision == "float" else ""
            body = re.sub(r"\bT\b", t, re.sub(r"(sin|sqrt)F", rf"\1{suffix}", C_HELPERS[kind]))
            parts.append(f"static {t} {self.name}_{kind}({t} x) {{ {body} }}\n")
        for routine in self.routines:
            parts.append(f"{self.signature(routine)}\n{{")
            out, place = MEANING[routine.name][0], 0
            for variable, text in statements(routine, self.language):
                if variable:
                    parts.append(f"    const {self.precision} {variable} = {text};")
                else:
                    parts.append(f"    {out}[{place}] = {text};")
                    place += 1
            unused = (name for name, _ in routine.inputs if name not in routine.used_inputs)
            parts += [*(f"    (void){name};" for name in unused), "}\n"]
        return "\n".join(parts)

    def signature(self, routine: Routine) -> str:
        """A function's declaration."""
        t = self.precision
        inputs = [f"const {t} {name}[{length}]" for name, length in routine.inputs]
        out = f"{t} {MEANING[routine.name][0]}[{max(len(routine.outputs), 1)}]"
        return f"void {self.name}_{routine.name}({', '.join([*inputs, out])})"


@dataclass(frozen=True, eq=False)
class CCode:
    """The C code of a robot; see `export_c`."""

    source: BaseParameterModel
    name: str
    precision: str = "double"
    kinds: tuple[str, ...] = ROUTINES

    @cached_property
    def routines(self) -> tuple[Routine, ...]:
        """One per kind."""
        return tuple(self.source.routine(kind) for kind in self.kinds)

    @cached_property
    def functions(self) -> CFunctions:
        """The functions without names, units and test vectors."""
        return CFunctions(self.routines, self.name, self.precision)

    @cached_property
    def text(self) -> str:
        """The source file."""
        include = f'#include "{self.name}.h"'
        functions = self.functions.source_text
        language, t, name = self.functions.language, self.precision, self.name
        size_of_expected = language.function("abs", "expected[k]")
        lines = []
        for key, values in self.test_vector.items():
            content = ", ".join(language.number(float(v)) for v in values)
            lines.append(f"const {t} {name}_test_{key}[{len(values)}] = {{{content}}};")
        # The comparison is negated, so that a number that is none counts as worst.
        lines.append(
            f"\nstatic {t} {name}_worse({t} worst, const {t} *found, const {t} *expected, int n)\n"
            "{\n    int k;\n"
            f"    {t} largest = 1;\n"
            f"    for (k = 0; k < n; k++) if ({size_of_expected} > largest) "
            f"largest = {size_of_expected};\n"
            "    for (k = 0; k < n; k++) {\n"
            f"        const {t} off = "
            f"{language.function('abs', 'found[k] - expected[k]')} / largest;\n"
            "        if (!(off <= worst)) worst = off;\n"
            "    }\n    return worst;\n}\n"
        )
        lines.append(f"{t} {name}_self_test(void)\n{{\n    {t} worst = 0;")
        for routine in self.routines:
            size = len(routine.outputs)
            arguments = ", ".join(f"{name}_test_{n}" for n, _ in routine.inputs)
            lines += [
                f"    {{\n        {t} out[{size}];",
                f"        {name}_{routine.name}({arguments}, out);",
                f"        worst = {name}_worse(worst, out, {name}_test_{routine.name}, {size});",
                "    }",
            ]
        parts = [self._describe_in_comment, include, functions, *lines]
        return "\n".join([*parts, "    return worst;\n}\n"])

    # -- test vector -------------------------------------------------------------------------

    @cached_property
    def test_vector(self) -> dict[str, Array]:
        """Inputs drawn with a fixed seed, and the outputs of each routine."""
        rng = np.random.default_rng(TEST_SEED)
        out = {x: rng.uniform(-1, 1, self.source.robot.dof) for x in MOTION}
        if self.source.beta is None:
            out["beta"] = rng.uniform(-1, 1, self.source.base.size)
        for name, length in dict(pair for r in self.routines for pair in r.inputs).items():
            if name not in out:
                out[name] = rng.uniform(-1, 1, length)
        for routine in self.routines:
            arguments = [out[name].tolist() for name, _ in routine.inputs]
            out[routine.name] = np.array(python_function(routine)(*arguments))
        return out

    # -- header ------------------------------------------------------------------------------

    @cached_property
    def header(self) -> str:
        """The header file."""
        guard = f"{self.name.upper()}_H"
        robot, base = self.source.robot, self.source.base
        lines = [
            self._describe_in_comment,
            f"#ifndef {guard}\n#define {guard}\n",
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            f"#define {self.name.upper()}_DOF {robot.dof}",
            f"#define {self.name.upper()}_BASE_PARAMETERS {base.size}\n",
        ]
        for routine in self.routines:
            count = routine.operations
            lines += [
                f"/* {MEANING[routine.name][1]}:",
                f"   {count.multiplications} multiplications, {count.additions} additions, "
                f"{count.functions} functions */",
                f"{self.functions.signature(routine)};\n",
            ]
        limit = PRECISIONS[self.precision]
        text = f"largest deviation from the vectors below; more than {limit:g} is wrong"
        lines.append(f"/* {text} */")
        lines.append(f"{self.precision} {self.name}_self_test(void);")
        for key, values in self.test_vector.items():
            lines.append(f"extern const {self.precision} {self.name}_test_{key}[{len(values)}];")
        return "\n".join([*lines, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"])

    @cached_property
    def _describe_in_comment(self) -> str:
        """Joints, units and base parameters, as a comment."""
        robot, base = self.source.robot, self.source.base
        lines = [f"Dynamics of {robot.name}, generated by feasid {feasid.__version__}.", ""]
        lines += [
            "SI units; gravity in the base frame "
            f"({', '.join(repr(float(g)) for g in robot.gravity)}) m/s^2.",
            "q, dq, ddq: joint positions, velocities, accelerations, in this order:",
        ]
        units = [
            "rad, N m" if column[:3].any() else "m, N"
            for body, _ in robot.moving_bodies
            for column in body.motion.T
        ]
        for k, (joint, unit) in enumerate(zip(robot.coordinates, units, strict=True)):
            lines.append(f"  [{k}] {joint}  {unit}")
        if len(robot.coordinates) > len(robot.moving_bodies):
            lines.append("joints of several coordinates: q are exponential coordinates, dq the")
            lines.append("twist in the body's own axes, ddq the rate of its coordinates")
        values = self.source.beta
        what = "argument beta of the functions" if values is None else "folded into the code"
        lines += ["", f"Base parameters ({what}):"]
        for k, expression in enumerate(base.expressions):
            value = "" if values is None else f" = {float(values[k])!r}"
            lines.append(f"  [{k}] {expression}{value}")
        lines += [f"note: {s}" for s in map(str, base.roundings)]
        body = "\n".join(f" * {escape_comment(line)}".rstrip() for line in lines)
        return f"/*\n{body}\n */"


def escape_comment(text: str) -> str:
    """Text of characters that cannot end a comment: no backslash, no trigraph, no line end."""
    text = "".join(c if c in COMMENT_CHARACTERS else "_" for c in text)
    return text.replace("*/", "* /").replace("/*", "/ *")


@checked
def export_c(
    robot: Robot,
    path: str | Path,
    *,
    precision: Literal["double", "float"] = "double",
    routines: Sequence[str] = ROUTINES,
    parameters: Literal["values", "argument"] = "values",
    base: BaseParameters | None = None,
    overwrite: bool = False,
) -> CCode:
    """Write a robot's dynamics as C99, with a header.

    Functions are named after the file: ``arm.c`` has ``arm_inverse_dynamics(q, dq, ddq, tau)``,
    ``arm_gravity(q, tau)``, ``arm_friction``, ``arm_mass_matrix(q, M)`` and
    ``arm_regressor(q, dq, ddq, Y)``; of a floating base, q, dq and ddq are those of
    `feasid.floating.floating_motion`. They need nothing but ``math.h``, allocate nothing, and take
    the same time for every input. ``arm_self_test()`` runs them on the vectors that the file holds.

    Parameters
    ----------
    robot : Robot
        A tree, its base fixed or floating, with values for all its parameters.
    path : path
        Ends in ``.c``; the header gets the same name with ``.h``.
    precision : {"double", "float"}
    routines : sequence of str
        Any of inverse_dynamics, gravity, friction, mass_matrix, regressor (the default) and
        forward_dynamics ``(q, dq, tau, out)``.
    parameters : {"values", "argument"}
        Fold the robot's parameters into the code, or let each function take the base parameters
        as its first argument ``beta``.
    base : BaseParameters, optional
        Of this robot. Default `feasid.base_parameters`, which treats rounded geometry (1.5708) as
        exact; the header lists it. ``base_parameters(robot, snap=None)`` takes the numbers
        literally.
    overwrite : bool

    Returns
    -------
    CCode
        The code, with ``text``, ``header`` and ``routines``; the ``operations`` of a routine are
        counted.

    Raises
    ------
    InputError
        A joint, routine or missing parameter prevents it; the message names it.
    OutputError
        A file exists and `overwrite` is False.
    """
    source = BaseParameterModel.from_robot(robot, base, argument=parameters == "argument")
    return write_code(source, path, precision, tuple(routines), overwrite=overwrite)


def write_code(
    source: BaseParameterModel,
    path: str | Path,
    precision: str,
    routines: tuple[str, ...],
    *,
    overwrite: bool = False,
) -> CCode:
    """Write routines of a model as a source and a header; see `export_c`."""
    target = Path(path)
    if target.suffix != ".c":
        raise InputError(f"C code goes into a file whose name ends in .c, not {target.name!r}")
    if not all(c.isalnum() or c in FILE_CHARACTERS for c in target.name):
        raise InputError(
            f"a file of C code is named with letters, digits and {FILE_CHARACTERS!r}, "
            f"not {quote(target.name)}"
        )
    header = target.with_suffix(".h")
    for file in (target, header):
        check_writable(file, overwrite=overwrite)
    name = re.sub(r"[^A-Za-z0-9_]", "_", target.stem)
    name = name if name[:1].isalpha() else f"robot_{name}"
    code = CCode(source, name, precision, routines)
    # Names of files may have characters that names of functions may not.
    text = code.text.replace(f'"{code.name}.h"', f'"{header.name}"', 1)
    write_together({target: text.encode(), header: code.header.encode()}, overwrite=overwrite)
    return code


FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared")

COMPILER_TIMEOUT = 120.0  #: Time limit of the compiler [s].


def find_compiler() -> str | None:
    """The C compiler: ``$CC``, or the first of cc, gcc, clang; None without one."""
    names = os.environ.get("CC"), "cc", "gcc", "clang"
    return next((name for name in names if name and shutil.which(name)), None)


def compile_routines(
    source: BaseParameterModel | StandardParameterModel, kinds: tuple[str, ...]
) -> dict[str, CompiledRoutine]:
    """Functions of arrays, by kind.

    Raises InputError: there is no compiler, or it fails; with its words.
    """
    command = find_compiler()
    if command is None:
        raise InputError("no C compiler was found: install one or set CC, or use backend='python'")
    code = CFunctions(tuple(source.routine(kind) for kind in kinds), "robot")
    # Windows does not delete a library that is loaded.
    with tempfile.TemporaryDirectory(prefix="feasid-", ignore_cleanup_errors=True) as folder:
        file, library = Path(folder, "robot.c"), Path(folder, "robot.so")
        file.write_text(code.source_text)
        call = [command, *FLAGS, str(file), "-o", str(library), "-lm"]
        try:
            done = subprocess.run(
                call, capture_output=True, text=True, timeout=COMPILER_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"the C compiler {command!r} did not work: {error}") from error
        if done.returncode:
            raise InputError(f"{command} could not compile the code: {done.stderr[:500]}")
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            raise InputError(f"what {command} compiled cannot be loaded: {error}") from error
    return {routine.name: CompiledRoutine(loaded, routine) for routine in code.routines}


class CompiledRoutine:
    """A function that copies its arguments into arrays of its own and calls the code."""

    def __init__(self, library: ctypes.CDLL, routine: Routine) -> None:
        self._function = getattr(library, f"robot_{routine.name}")
        self._buffers = [np.zeros(length) for _, length in routine.inputs]
        self._out = np.zeros(len(routine.outputs))
        self._pointers = [b.ctypes.data for b in (*self._buffers, self._out)]
        self._function.argtypes = [ctypes.c_void_p] * len(self._pointers)

    def __call__(self, *arguments: Array) -> Array:
        """The outputs, overwritten by the next call."""
        for buffer, argument in zip(self._buffers, arguments, strict=True):
            buffer[:] = argument
        self._function(*self._pointers)
        return self._out

    def play(self, state: Array, *signals: Array) -> Array:
        """Outputs (N, size) for samples (N, k) one after another; the state is the end of each."""
        out = np.empty((len(signals[0]) + 1, len(self._out)))
        out[0, -len(state) :] = state
        arrays = (*map(np.ascontiguousarray, signals), out[:-1, -len(state) :], out[1:])
        places = [(x.ctypes.data + x.strides[0] * np.arange(len(x))).tolist() for x in arrays]
        for pointers in zip(*places, strict=True):
            self._function(*pointers)
        return out[1:]
