"""What a robot's names and a file's name may not do in generated C."""

import re
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robots import ARM, read_arm

import feasid
from feasid.core.errors import InputError
from feasid.results.codegen.c import escape_comment, find_compiler

HOSTILE = [
    "*\\ int x; /*", "*/ int x; /*", "**//int x;/**", "*\\\\ int x;", "*??/\\/ int x;",
    "*\\\n/ int x;", "*\u2028/", "*\\ __asm__(&quot;.globl x&quot;); /*",
]  # fmt: skip


def without_comments(text):
    """The text as a compiler sees it: trigraphs, spliced lines, then comments (C99 5.1.1.2)."""
    for character, meaning in zip("=(/)'<!>-", "#[\\]^{|}~", strict=True):
        text = text.replace(f"??{character}", meaning)
    spliced = re.sub(r"\\[ \t]*\r?\n", "", text)
    return re.sub(r"/\*.*?\*/", " ", spliced, flags=re.S)


def comment(lines):
    return "\n".join(["/*", *(f" * {escape_comment(line)}".rstrip() for line in lines), " */"])


@given(st.lists(st.text(st.sampled_from("*/\\?\n\r a=ü\u2028\"'")), min_size=1))
def test_no_text_ends_a_comment(lines):
    assert without_comments(comment(lines)).strip() == ""
    assert comment(lines).isascii()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_description_becomes_code(name, tmp_path):
    attribute = name.replace("\n", "&#10;")
    (tmp_path / "evil.urdf").write_text(ARM.replace('name="shoulder"', f'name="{attribute}"'))
    try:
        robot = feasid.load_robot(tmp_path / "evil.urdf", lock={})
    except feasid.FeasidError:
        return  # a name of two lines
    robot = robot.with_values(np.nan_to_num(robot.values, nan=0.1))
    code = feasid.export_c(robot, tmp_path / "arm.c")
    for part in (code.text, code.header):
        compiled = without_comments(part)
        assert "int x" not in compiled
        assert "asm" not in compiled
    assert find_compiler() is None or runs(tmp_path)


def runs(folder):
    """Whether the written self-test passes when it is compiled with all warnings as errors."""
    (folder / "main.c").write_text(
        '#include "arm.h"\nint main(void) { return arm_self_test() > 1e-9; }'
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wcomment", "-Werror"]
    files = ["main.c", "arm.c", "-o", "arm", "-lm"]
    subprocess.run([find_compiler(), *flags, *files], cwd=folder, check=True)
    return subprocess.run([folder / "arm"]).returncode == 0


@pytest.mark.parametrize("name", ['a".c', "a\nint x;.c", "a\\.c"])
def test_a_file_name_that_c_cannot_include_is_refused(name, tmp_path):
    robot = read_arm(tmp_path)
    robot = robot.with_values(np.nan_to_num(robot.values, nan=0.1))
    with pytest.raises(InputError, match="letters, digits"):
        feasid.export_c(robot, tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm.urdf"]
