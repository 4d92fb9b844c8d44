"""The gate of the Valkyrie paper, from the options of the example."""

import pytest
import valkyrie

import feasid


def test_the_gate_of_the_paper_opens_when_its_buffer_is_full():
    """A buffer of 50 rows at 3 Hz is full after 17 s, and R2 alone opens the gate."""
    robot, log = valkyrie.recorded_arm()
    table = valkyrie.replay_published(log, robot, valkyrie.RATE).table
    assert table["rows"].iloc[-1] == 50
    opened = table.index[table["open"]][0]
    assert 16 <= opened <= 18
    assert table["r2"][opened] > 0.99
    with pytest.raises(ValueError, match="at least 6 Hz"):
        valkyrie.published_options(3.0)


def test_a_block_that_replay_cannot_use_is_rejected():
    robot, log = valkyrie.recorded_arm(2.0)
    with pytest.raises(feasid.FeasidError, match="block must be a number of samples"):
        feasid.replay(log, robot, online={"block": 0})


def test_the_example_prints_both_gates(capsys):
    valkyrie.main()
    assert capsys.readouterr().out.count("rules: open at") == 2
