"""Arguments that are parameters of public functions: read from the source, without an import."""

import inspect
import subprocess
import sys
from importlib import import_module
from operator import attrgetter

import numpy as np
import pytest

from feasid.cli import load_command
from feasid.cli.options import Parser, read_options
from feasid.cli.robot import LOAD, ROBOT, read_robot
from feasid.cli.signatures import parameter_options, parameters_of, read_parameters
from feasid.core.errors import InputError
from feasid.options.tables import ReduceOptions

EXCITE = "applications.excitation.excite:excite"


@pytest.mark.parametrize(
    "function",
    [
        *(EXCITE, LOAD, "results.fit:Fit.sample", "identification.assessment.simulation:simulate"),
        *("applications.online.replay:replay", "identification.regression.reduce:reduce"),
    ],
)
def test_names_and_defaults_are_those_of_the_function(function):
    module, _, name = function.partition(":")
    signature = inspect.signature(attrgetter(name)(import_module(f"feasid.{module}"))).parameters
    options = parameter_options(function)
    assert {*options} <= {*signature}
    for name, option in options.items():
        assert option.default in (None, signature[name].default)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (["--position", "2"], {"position": 2}), (["--position", "-1,1"], {"position": (-1, 1)}),
        (["--position", "elbow=2", "--position", "wrist=-1,1"],
         {"position": {"elbow": 2, "wrist": (-1, 1)}}),
        (["--workspace", '{"tip": [[0, 0, 0], [1, 1, 1]]}'],
         {"workspace": {"tip": [[0, 0, 0], [1, 1, 1]]}}),
        (["--drive-inertia", "--seed", "3"], {"drive_inertia": True, "seed": 3}),
        (["--family", "spline"], {"family": "spline"}), (["--meshes", "2"], {"meshes": "2"}),
        ([], {}),
    ],
)  # fmt: skip
def test_words_become_values_of_parameters(typed, value):
    parser = Parser()
    names = "position workspace drive_inertia seed family meshes"
    parameters_of(EXCITE, names)(parser)
    assert read_parameters(parser.parse_args(typed), EXCITE, names) == value


def test_a_word_that_a_parameter_does_not_take_is_refused_by_its_name():
    parser = Parser()
    parameters_of(EXCITE, "family seed")(parser)
    for typed in (["--family", "splin"], ["--seed", "-1"]):
        with pytest.raises(InputError, match=f"{typed[0]} must be"):
            read_parameters(parser.parse_args(typed), EXCITE, "family seed")


def test_a_robot_is_read_as_it_is_typed(tmp_path):
    from robots import ARM

    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    parser = Parser()
    for add in ROBOT:
        add(parser)
    typed = ["--lock", "slide", "--lock", "shoulder=.5", "--gravity", "-1,0,0"]
    robot = read_robot(parser.parse_args(["--robot", str(path), *typed]))
    assert robot.joints == ("wheel_joint",)
    np.testing.assert_array_equal(robot.gravity, [-1, 0, 0])


def test_a_transmission_stands_in_a_file(tmp_path):
    path = tmp_path / "T.txt"
    path.write_text("1, 0\n\n0.5 2\n")
    parser = Parser()
    load_command("reduce").add_arguments(parser)
    words = ["log.csv", "--robot", "arm.urdf", "--out", "x.reduced"]
    for typed in (["--transmission", str(path)], ["--option", f"transmission={path}"]):
        arguments = parser.parse_args([*words, *typed])
        read = read_options(arguments, ReduceOptions, "reduce")
        assert read["transmission"] == [[1, 0], [0.5, 2]]
    path.write_text("1 x\n")
    with pytest.raises(InputError, match="a transmission matrix holds numbers only"):
        read_options(arguments, ReduceOptions, "reduce")


def test_help_imports_no_pandas():
    program = (
        "import sys; from feasid.cli import main\n"
        "try: main(['excite', '--help'])\n"
        "except SystemExit: print(*{'pandas', 'scipy', 'cvxpy'} & {*sys.modules}, 'nothing')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].strip() == "nothing"
