"""Fit a real log inside the package, of a Kinova Gen3 arm, and compare the model with two others:
its URDF, and least squares without constraints.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from feasid.cli import Answer
from feasid.cli.options import flag, takes, word
from feasid.cli.output import fit_as_data, print_display
from feasid.core.files import check_outputs, with_ending
from feasid.core.text import in_percent

if TYPE_CHECKING:
    import pandas as pd

    from feasid.results.fit import Fit
    from feasid.robot.description import Robot

ABOUT = """\
A Kinova Gen3 arm: three runs of 9 s in all, and its URDF.
Three models of it, judged on motion that they were not fitted to:
"""


@takes(
    word("--out", "FILE", "URDF, MJCF or SDF", default="kinova_identified.xml"),
    flag("--overwrite", "replace existing files"),
)
def run(arguments: argparse.Namespace) -> Answer:
    """Fit, compare three models, write the robot, and a report page where jinja2 is installed."""
    report = with_ending(arguments.out, ".html") if find_spec("jinja2") else None
    outputs = {"--out": arguments.out, "its report": report}
    check_outputs(outputs, (), overwrite=arguments.overwrite)
    from feasid import datasets
    from feasid.results.fit import fit

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


def compare_models(fit: Fit) -> pd.DataFrame:
    """Torque error, impossible bodies and MuJoCo's answer of description, least squares and fit.

    Errors are those on parts of the log that a model was not fitted to. MuJoCo is asked where it
    is installed.
    """
    import pandas as pd

    from feasid.results.report.robots import compared_robots, robot_views

    errors, views = fit.evidence.errors, robot_views(fit)
    relative = [errors.description, errors.model, errors.least_squares]
    models = pd.DataFrame(
        {
            "torque error": [errors.overall_error(error) for error in relative],
            "impossible bodies": [f"{len(v.impossible)} of {len(v.links)}" for v in views],
        },
        index=["description", "feasid", "least squares"],
    )
    if find_spec("mujoco"):
        models["MuJoCo"] = [*map(ask_mujoco, compared_robots(fit).values())]
    return models.loc[["description", "least squares", "feasid"]]


def ask_mujoco(robot: Robot) -> str:
    """Whether MuJoCo's compiler accepts bodies with these inertials, each on its own joint."""
    import mujoco  # type: ignore[import-untyped]

    from feasid.robot.inertia import to_mass_com_inertia

    bodies = []
    for columns in robot.inertial_columns:
        mass, com, inertia = to_mass_com_inertia(robot.values[columns])
        six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        place, tensor = (" ".join(map(str, x)) for x in (com, six))
        inertial = f"<inertial mass='{mass}' pos='{place}' fullinertia='{tensor}'/>"
        bodies.append(f"<body><joint/>{inertial}</body>")
    try:
        mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")
    except ValueError:
        return "refuses it"
    return "loads it"
