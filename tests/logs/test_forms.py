"""One log in many forms (`benchmarks.forms`): each gives the same fit, or says what does."""

import struct

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io

import feasid
from benchmarks import forms
from feasid.core.errors import LimitError, LogError
from feasid.logs.read.matlab import HEADER_BYTES
from feasid.logs.table import standard_table
from feasid.logs.units import standard_unit_spelling


@pytest.mark.sampled(0.34)
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("form", forms.FORMS, ids=[f[0] for f in forms.FORMS])
def test_every_form_gives_the_same_fit(tmp_path, form):
    same, true = forms.distances(*form, tmp_path)
    assert same < forms.SAME
    assert true < forms.TRUE


def test_a_unit_of_another_quantity_is_refused():
    with pytest.raises(LogError, match=r"'q_j1' is in 'Nm'.*no known unit of a position"):
        feasid.fit(forms.table(q="q_{} [Nm]"), forms.case()[0], **forms.FEW)


def test_an_option_that_contradicts_the_header_is_refused():
    df = forms.table(q="q_{} [deg]", lengths=(forms.DEGREE, 1, 1))
    same = feasid.fit(df, forms.case()[0], units={"q": "deg"}, **forms.FEW)
    np.testing.assert_allclose(same.beta, forms.case()[2].beta, rtol=1e-6)
    with pytest.raises(LogError, match=r"header states that 'q' is in 'deg'"):
        feasid.fit(df, forms.case()[0], units={"q": "rad"}, **forms.FEW)


def test_letters_of_a_joint_are_no_unit():
    names = ("arm_A", "arm_m")
    bodies = [feasid.Body("upper", None, joint=names[0]),
              feasid.Body("lower", "upper", position=(0, 0, 0.4), joint=names[1])]  # fmt: skip
    df = forms.table(joints=names)
    motion = feasid.Recording(df).motion(feasid.Robot(bodies))
    assert not [n for n in motion.notes if n.code in ("currents", "converted")]


def test_lerobot_by_pandas_and_by_pyarrow_give_the_same_rows(tmp_path):
    tables = []
    for name in ("LeRobot 3 by pandas", "LeRobot 3 by pyarrow"):
        (tmp_path / name).mkdir()
        folder = forms.OTHERS[name](tmp_path / name)
        tables.append(feasid.Recording(folder).table(forms.case()[0]))
    pd.testing.assert_frame_equal(*tables)
    assert {"q_j1", "q_j2", "cmd_j1", "tau_j2", "t", "run"} <= {*tables[0].columns}
    assert tables[0]["run"].nunique() == 2


def test_a_matlab_file_that_expands_beyond_reason_is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "log.mat", {"q": np.zeros((3_000_000, 1))}, do_compression=True)
    with pytest.raises(LimitError, match="expands to more than"):
        feasid.read_log(tmp_path / "log.mat")
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file.create_dataset("q", (10_000_000,), "f8", chunks=(1000,))
    with pytest.raises(LimitError, match="expands to more than"):
        feasid.read_log(tmp_path / "log.h5")


@pytest.mark.parametrize("packed", [False, True])
def test_a_matlab_file_that_is_cut_off_is_refused(packed, tmp_path):
    """SciPy reads the whole variables of what is left, without a word."""
    names = {f"q_j{k}": np.random.default_rng(k).normal(size=(300, 1)) for k in range(4)}
    scipy.io.savemat(tmp_path / "log.mat", names, do_compression=packed)
    whole = (tmp_path / "log.mat").read_bytes()
    for cut in (whole[:-1], whole[: len(whole) // 2], whole[: len(whole) // 3], whole + b"\0"):
        (tmp_path / "cut.mat").write_bytes(cut)
        with pytest.raises(LogError, match=r"cut\.mat: damaged or no MATLAB"):
            feasid.read_log(tmp_path / "cut.mat")
    length = bytearray(whole)
    length[HEADER_BYTES + 4 : HEADER_BYTES + 8] = struct.pack("<I", 2**31 - 1)
    (tmp_path / "cut.mat").write_bytes(length)
    with pytest.raises(LogError, match=r"cut\.mat: damaged or no MATLAB"):
        feasid.read_log(tmp_path / "cut.mat")


def test_structures_of_matlab_are_told_with_their_remedy(tmp_path):
    scipy.io.savemat(tmp_path / "log.mat", {"data": {"q": np.zeros(5)}})
    with pytest.raises(LogError, match=r"data \(struct\).*-struct"):
        feasid.read_log(tmp_path / "log.mat")
    (tmp_path / "bad.mat").write_bytes(b"MATLAB 5.0".ljust(126) + b"IM" + b"\x0f" * 40)
    with pytest.raises(LogError, match=r"bad\.mat"):
        feasid.read_log(tmp_path / "bad.mat")


def test_a_misspelt_column_is_proposed_for_the_name_that_is_looked_for():
    robot = forms.case()[0]
    df = forms.table().rename(columns={"q_j2": "qj2", "tau_j2": "tauj2"})
    with pytest.raises(LogError) as caught:
        feasid.fit(df, robot, **forms.FEW)
    assert "columns={'q_j2': 'qj2', 'tau_j2': 'tauj2'}" in str(caught.value)
    fit = forms.fit_as_advised(df, robot, False)
    np.testing.assert_allclose(fit.beta, forms.case()[2].beta, rtol=1e-9)


def test_indices_in_brackets_are_no_units():
    df = standard_table(
        pd.DataFrame({"q[0]": [1.0], "q[1]": [2.0], "tau_J[1]": [3.0]}), forms.JOINTS
    )
    assert [*df.columns] == ["q[0]", "q[1]", "tau_J[1]"]


@pytest.mark.parametrize(
    ("written", "unit"),
    [("°/sec", "deg/s"), ("rad s^-1", "rad/s"), ("rad s-1", "rad/s"), ("deg/s/s", "deg/s^2"),
     ("rad/s²", "rad/s^2"), ("N·m", "Nm"), ("N m", "Nm"), ("N*mm", "Nmm"), ("kgf cm", "kgcm"),
     ("RPM", "rpm"), ("Degrees", "deg"), ("µs", "us"), ("m/s", "m/s"), ("MNm", "MNm"),
     ("amps", "A"), ("turns per second", "rev/s")],
)  # fmt: skip
def test_spellings_of_units(written, unit):
    assert standard_unit_spelling(written) == unit
