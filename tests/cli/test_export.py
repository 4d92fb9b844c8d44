"""``feasid export``: C code of a saved fit or of a model file."""

import pytest
from logs import arm_parameters
from robots import read_arm

import feasid
from feasid.cli import main


@pytest.fixture
def folder(here):
    robot = read_arm(here).without_joint_terms()
    feasid.write(robot.with_values(arm_parameters(robot)), "arm.urdf", overwrite=True)
    return here


def test_source_and_header_are_written(folder, capsys):
    assert main(["export", "arm.urdf", "--c", "arm.c"]) == 0
    printed = capsys.readouterr().out
    assert "wrote arm.c and arm.h" in printed
    assert "arm_mass_matrix" in printed
    assert "void arm_inverse_dynamics(const double q[3]" in (folder / "arm.h").read_text()
    assert main(["export", "arm.urdf", "--c", "arm.c"]) == 2
    assert main(["export", "arm.urdf", "--c", "arm.c", "--float", "--argument", "--overwrite"]) == 0
    assert "const float beta[" in (folder / "arm.h").read_text()


def test_mistakes_are_named(folder, capsys):
    assert main(["export", "arm.urdf", "--c", "arm.txt"]) == 2
    assert "ends in .c" in capsys.readouterr().err
    assert not (folder / "arm.txt").exists()
