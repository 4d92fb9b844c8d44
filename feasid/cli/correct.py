"""The command ``correct``."""

from __future__ import annotations

import argparse

from feasid.applications.inspection.file_correction import correct_file, correction_lines
from feasid.cli import Answer, beta
from feasid.cli.options import flag, takes, word
from feasid.cli.signatures import parameters_of, read_parameters
from feasid.core.errors import InputError
from feasid.core.files import check_outputs, write_atomically

CORRECT = "applications.inspection.file_correction:correct_file"


@takes(
    word("file", "FILE", "URDF, MJCF, SDF or USD", nargs="?"),
    word("--out", "FIXED", "file to write", required=True),
    flag("--overwrite", "replace FIXED if it exists"),
    parameters_of(CORRECT, "metric margin fill total_mass for_"),
    *beta.ARGUMENTS,
)
def run_correct(arguments: argparse.Namespace) -> Answer:
    """The closest consistent model: the file's own text, with only impossible numbers changed.

    With --beta and --robot the closest feasible base parameters, written as CSV.

    Exit status: 0 written, 2 error. The written file is verified in exact arithmetic.
    """
    outputs = {"--out": arguments.out, "--certificate": arguments.certificate}
    inputs = arguments.file, arguments.beta, arguments.robot
    check_outputs(outputs, inputs, overwrite=arguments.overwrite)
    if arguments.beta is not None:
        if arguments.file is not None:
            raise InputError(f"--beta requires --robot; remove {arguments.file} from the arguments")
        if arguments.total_mass is not None:
            raise InputError("--total-mass applies to the links of a file, not to --beta")
        import pandas as pd

        from feasid.applications.inspection.base_values import NAME, VALUE
        from feasid.parameters.feasibility.correct import correct

        values, base = beta.read_values_and_base(arguments)
        answer = correct(values, base, consistency=arguments.consistency, solver=arguments.solver)
        index = pd.Index(base.expressions, name=NAME)
        table = pd.DataFrame({"given": values.to_numpy(), VALUE: answer.beta}, index=index)
        write_atomically(arguments.out, table.to_csv().encode(), overwrite=arguments.overwrite)
        far = f"the closest feasible values, Euclidean distance {answer.distance:.6g}"
        print(f"wrote {arguments.out}: {far if answer.changed else 'unchanged, they are feasible'}")
        beta.save_certificate(answer.optimality, arguments.certificate, arguments.overwrite)
        return 0, lambda: {
            "robot": arguments.robot,
            "out": arguments.out,
            "distance": answer.distance,
            "base_parameters": table[VALUE].to_dict(),
        }
    beta.refuse_arguments(arguments, bool(arguments.file), "links are corrected without a solver")
    how = read_parameters(arguments, CORRECT, "metric margin fill total_mass for_ model")
    done = correct_file(arguments.file, **how)
    done.write(arguments.out, overwrite=arguments.overwrite)
    print("".join(f"{line}\n" for line in correction_lines(done)), end="")
    count = len(done.changes)
    changed = f"{count} link{'s' * (count > 1)} corrected, all physically consistent"
    print(f"{arguments.out}: {changed if count else 'unchanged, every link is feasible'}")
    return 0, lambda: {
        "path": arguments.file,
        "out": arguments.out,
        "changes": [c.to_dict() for c in done.changes],
    }
