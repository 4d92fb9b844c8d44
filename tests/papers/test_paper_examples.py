"""The examples that set published numbers beside ours, run as a user would run them."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()


def test_yoshida(capsys):
    ours, published = run("yoshida")
    assert ours.pop("corrected") == pytest.approx(published.pop("corrected"), abs=2e-6)
    assert ours == published
    assert "proofs" in capsys.readouterr().out


def test_wam7(capsys):
    ours, published = run("wam7")
    exact = [k for k in ours if "parameters" in k or "Table" in k or k.endswith("estimate")]
    assert [ours[k] for k in exact] == [published[k] for k in exact]
    errors = [ours[f"error % {k}"] for k in ("OLS", "FBPE-OLS", "FBPE-OLS, bounds")]
    assert errors == sorted(errors)
    assert len(set(errors)) == 3
    assert errors[-1] - errors[0] < 0.1
    assert ours["error % BPFC"] > ours["error % FBPE-OLS"]
    assert ours["correlation"] > 0.95
    assert "published" in capsys.readouterr().out
