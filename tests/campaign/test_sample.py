"""A small sample of the campaign: the whole of it is ``python -m tests.campaign``."""

import random
import warnings

import pytest

INPUTS = 40

pytest.importorskip("pyarrow")
pytest.importorskip("rosbags")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    from campaign.kinds import kinds

    return kinds(tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("name", ["urdf", "mjcf", "csv", "npz", "parquet", "reduced", "saved fit"])
def test_changed_inputs_end_in_values_or_feasid_errors(everything, name, tmp_path):
    from campaign import mutators
    from feasid.errors import FeasidError

    kind, passed = everything[name], 0
    for number in range(INPUTS):
        rng = random.Random(f"{name} {number}")
        data = mutators.several(rng, rng.choice(kind.seeds), kind.change)
        path, value = kind.write(tmp_path, data), None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _, stage in kind.stages:
                    value = stage(path, value)
                    passed += 1
        except FeasidError:
            pass
    assert passed > INPUTS / 4  # the changes reach beyond the first check
