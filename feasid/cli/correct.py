"""The closest consistent model: the file's own text, with only impossible numbers changed.

With --beta and --robot the closest feasible base parameters, written as CSV.

Exit status: 0 written, 2 error. The written file is verified in exact arithmetic.
"""

from __future__ import annotations

import argparse

import numpy as np

from feasid.applications.inspection.file_correction import correct_file
from feasid.applications.inspection.judge import principal_moments
from feasid.cli import Answer, beta
from feasid.cli.options import flag, takes, word
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.display import plain
from feasid.core.errors import InputError
from feasid.core.files import check_outputs, check_writable, write_atomically
from feasid.robot import inertia

CORRECT = "applications.inspection.file_correction:correct_file"


@takes(
    word("file", "FILE", "URDF, MJCF, SDF or USD", nargs="?"),
    word("--out", "FIXED", "file to write", required=True),
    flag("--overwrite", "replace FIXED if it exists"),
    parameters_of(CORRECT, "metric margin fill total_mass for_"),
    *beta.ARGUMENTS,
)
def run(arguments: argparse.Namespace) -> Answer:
    """Correct a file."""
    outputs = {"--out": arguments.out, "--certificate": arguments.certificate}
    inputs = arguments.file, arguments.beta, arguments.robot
    check_outputs(outputs, inputs, overwrite=arguments.overwrite)
    if arguments.beta is not None:
        return _correct_beta(arguments)
    beta.refuse_arguments(arguments, bool(arguments.file), "links are corrected without a solver")
    check_writable(arguments.out, overwrite=arguments.overwrite)
    how = read_parameters(arguments, CORRECT, "metric margin fill total_mass for_ model")
    done = correct_file(arguments.file, **how)
    done.write(arguments.out, overwrite=arguments.overwrite)
    count = len(done.changes)
    width = max((len(plain(c.link.name)) for c in done.changes), default=0)
    if count:
        print(f"{'link':{width}}  {'':6}  {'mass':>9}  {'principal moments [kg m^2]':33}  change")
    for change in done.changes:
        link, new = change.link, change.new
        tensor = inertia.rotational_inertia([*new.moments, 0, 0, 0, 0])
        before = _inertial_text(float(link.mass or 0), principal_moments(link.moments or ()))
        after = _inertial_text(new.mass, np.linalg.eigvalsh(tensor))
        print(f"{plain(link.name):{width}}  before  {before}")
        size = f"{100 * new.distance:.3g} %" if new.distance < 10 else "new"
        print(f"{'':{width}}  after   {after}  {size}")
        if new.note:
            print(f"{'':{width}}  {new.note}")
    changed = f"{count} link{'s' * (count > 1)} corrected, all physically consistent"
    print(f"{arguments.out}: {changed if count else 'unchanged, every link is feasible'}")
    return 0, lambda: {
        "path": arguments.file,
        "out": arguments.out,
        "changes": [c.to_dict() for c in done.changes],
    }


def _correct_beta(arguments: argparse.Namespace) -> Answer:
    """Base parameters instead of a file."""
    if arguments.file is not None:
        raise InputError(f"--beta requires --robot; remove {arguments.file} from the arguments")
    if arguments.total_mass is not None:
        raise InputError("--total-mass applies to the links of a file, not to --beta")
    import pandas as pd

    from feasid.parameters.feasibility.correct import correct

    values, base = beta.read_values_and_base(arguments)
    done = correct(values, base, consistency=arguments.consistency, solver=arguments.solver)
    index = pd.Index(base.expressions, name="base parameter")
    table = pd.DataFrame({"given": values.to_numpy(), beta.VALUE: done.beta}, index=index)
    write_atomically(arguments.out, table.to_csv().encode(), overwrite=arguments.overwrite)
    far = f"the closest feasible values, Euclidean distance {done.distance:.6g}"
    print(f"wrote {arguments.out}: {far if done.changed else 'unchanged, they are feasible'}")
    beta.save_certificate(done.optimality, arguments.certificate, arguments.overwrite)
    return 0, lambda: {
        "robot": arguments.robot,
        "out": arguments.out,
        "distance": done.distance,
        "base_parameters": table[beta.VALUE].to_dict(),
    }


def _inertial_text(mass: float, moments: np.ndarray) -> str:
    return f"{mass:9.4g}  " + "  ".join(f"{x:9.3g}" for x in moments)
