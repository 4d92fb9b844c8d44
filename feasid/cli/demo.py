"""The command ``demo``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.util import find_spec

from feasid.cli import Answer
from feasid.cli.options import flag, takes, word
from feasid.cli.output import fit_as_data, print_display
from feasid.core.files import check_outputs, with_ending
from feasid.core.text import in_percent

ABOUT = """\
A Kinova Gen3 arm: three runs of 9 s in all, and its URDF.
Three models of it, judged on motion that they were not fitted to:
"""


@takes(
    word("--out", "FILE", "URDF, MJCF or SDF", default="kinova_identified.xml"),
    flag("--overwrite", "replace existing files"),
)
def run_demo(arguments: argparse.Namespace) -> Answer:
    """Fit a real log inside the package, of a Kinova Gen3 arm, and compare the model with two
    others: its URDF, and least squares without constraints.
    """
    report = with_ending(arguments.out, ".html") if find_spec("jinja2") else None
    outputs = {"--out": arguments.out, "its report": report}
    check_outputs(outputs, (), overwrite=arguments.overwrite)
    from feasid import datasets
    from feasid.results.fit import fit
    from feasid.results.report.robots import compare_models

    result = fit(datasets.load("kinova_gen3"))
    models = compare_models(result)
    print(f"{ABOUT}\n{models.to_string(formatters={'torque error': in_percent})}\n")
    print_display(replace(result.display(), more="more: feasid explain CODE [in brackets]"))
    result.write(arguments.out, overwrite=arguments.overwrite)
    print(f"\nwrote {arguments.out}: read back and verified in exact arithmetic")
    if report:
        result.report(report, command=arguments.typed, overwrite=arguments.overwrite)
        print(f"wrote {report}: open it in a browser to see the three models")
    rows = models.reset_index(names="model").to_dict("records")
    return 0, lambda: {**fit_as_data(result), "out": arguments.out, "models": rows}
