"""What is said at the prompt is in the prompt's spelling."""

import pytest

from feasid.options.spelling import spell_as_arguments


@pytest.mark.parametrize(
    ("python", "prompt"),
    [
        ("choose one with topic=: /a, /b", "choose one with --topic: /a, /b"),
        ("set trim=0 or cutoff=False", "set --trim 0 or --cutoff no"),
        ("nan='drop-segments' leaves", "--nan drop-segments leaves"),
        (
            "(friction=(), drive_inertia=False fits rigid bodies only)",
            "(--friction none, --drive-inertia no fits rigid bodies only)",
        ),
        ("units={'tau': -1}.", "--units tau=-1."),
        ("exclude=[(1.5, 2.0), (3, 4)]", "--exclude '[[1.5, 2.0], [3, 4]]'"),
        ("delay=-0.033, which", "--delay -0.033, which"),
        ("a cut-off of 8. cutoff=8.", "a cut-off of 8. --cutoff 8."),
        ("needs prior_weight: a number", "needs --prior-weight: a number"),
        ("overwrite=True replaces it", "--overwrite replaces it"),
        ("the delay is 3 s, the mass 4 kg", "the delay is 3 s, the mass 4 kg"),
        ("--cutoff=8 was given", "--cutoff=8 was given"),
        ("column 'rate' and my_rate=3 and x.rate=2", "column 'rate' and my_rate=3 and x.rate=2"),
        (
            "can be locked: load_robot(..., lock={'hand': 0.0, 'jaw': 0.0})",
            "can be locked: --lock hand=0.0 --lock jaw=0.0",
        ),
        ("load_robot(..., gravity=(0, 0, 9.81))", "--gravity=0,0,9.81"),
        ("Map others with units={'q': ...}", "Map others with --units q=..."),
        ("pass position={'j': (low, high)} here", "pass --position j=LOW,HIGH here"),
        ("record a motion: feasid.excite(robot)", "record a motion: feasid excite"),
        ("load_robot(path, ignore=['gear'])", "--ignore gear"),
        ("fit with moments=[['a', M]]: M", "fit with --moments '[['\"'\"'a'\"'\"', M]]': M"),
        ("units={'q': 'deg", "--units{'q': 'deg"),
    ],
)
def test_options_are_spelled_as_they_are_typed(python, prompt):
    assert spell_as_arguments(python) == prompt
    assert spell_as_arguments(prompt) == prompt
