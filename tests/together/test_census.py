"""Every option of a fit is about the model, about the signals or about rows: one place each."""

from feasid.options.tables import FitOptions

ASSIGNED = {
    "estimator": {  # about the model: which parameters, which of them are possible, how weighed
        *("couplings", "friction", "drive_inertia", "candidates", "elastic", "passive"),
        *("mass", "total_mass", "mass_sums", "com_box", "com_ellipsoid", "com_cylinder"),
        *("com_hull", "inertia_ellipsoid", "linear", "constraints", "known", "equal", "mirrored"),
        *("consistency", "plausible", "solver", "weights"),
        *("prior", "prior_weight", "reference", "slack"),
    },
    "calibration": {  # about the signals: what sensors and servos make of the truth
        *("units", "transmission", "offsets", "delay", "calibration", "imu", "contacts"),
        *("servo", "command", "servo_terms", "gains", "moments", "loaded", "load"),
        "friction_per_kelvin",
    },
    "rows": {  # which rows of the log count, and how they are formed
        *("columns", "topic", "rate", "corrupt", "nan", "sort", "exclude", "measured"),
        *("cutoff", "filter_torque", "derivative_cutoff", "filtering", "rest"),
        *("trim", "decimate", "robust", "block", "diagnose"),
    },
}
"""Where each option belongs; a new one is entered here, in one place."""


def test_every_option_of_a_fit_belongs_to_one_place():
    known = [name for names in ASSIGNED.values() for name in names]
    assert sorted(known) == sorted({*known}), "an option is in two places"
    assert {*known} == {*FitOptions.__annotations__}, "enter new options in one place of the table"
