"""Changed files of every kind: nothing but `FeasidError`, within 5 s and a gigabyte."""

import pytest

INPUTS = 20_000

pytest.importorskip("pyarrow")
pytest.importorskip("rosbags")

KINDS = (
    *("urdf", "mjcf", "sidecar", "csv", "npz", "parquet", "mcap", "bag database", "bag folder"),
    *("reduced", "saved fit", "online fit", "certificate"),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_changed_files_end_in_values_or_feasid_errors(kind, pytestconfig, tmp_path, capsys):
    """As many as ``--inputs`` says, by the campaign's processes, which see what is opened."""
    from benchmarks.campaign import totals
    from benchmarks.campaign.__main__ import main
    from benchmarks.campaign.child import SECONDS

    count = pytestconfig.getoption("inputs", None) or INPUTS
    counts, first = tmp_path / "counts.json", pytestconfig.getoption("first", None) or 0
    order = ["--kinds", kind, "--past", "0", "--minutes", "600", "--counts", str(counts)]
    order += ["--total", str(count), "--inputs", str(count), "--first", str(first)]
    status = main([*order, "--keep", str(tmp_path / "failures")])
    done = totals.load(counts, [kind], first)[kind]
    with capsys.disabled():
        print(f"\n{kind}: {done.inputs} inputs, {done.past} past the first check, {done.faults}")
    assert (status, done.faults) == (0, [])
    assert done.inputs == count
    assert done.slowest < SECONDS
