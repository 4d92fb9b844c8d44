"""Values of every option of a fit, as right or wrong as users give them, for any of the worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import feasid
from feasid.logs.floating import USED
from feasid.options.tables import CommandOptions, FloatingOptions, LogOptions
from feasid.robot import inertia

from .arms import FEET, KP, LOAD, RATE, described_bodies, load, true_bodies, world

TOLERANCE = 1e-9
"""Relative, of a bound that a model keeps."""
MASS_ONLY = [np.nan] * 9


def unchanged(frame, arm):
    return frame


def nothing_asked(arm, robot):
    return True


@dataclass(frozen=True, eq=False)
class Choice:
    """One option's value: by world, with the log that goes with it, and what it asks of a model."""

    label: str
    options: Callable
    change: Callable = unchanged
    kept: Callable = nothing_asked

    @property
    def option(self):
        return self.label.split(":")[0]

    @property
    def honest(self):
        """Whether it is true of the robot."""
        return not any(word in self.label for word in UNTRUE)


UNTRUE = (
    *("wrong", "half", "a tenth", "a third", "small"),
    *("friction:none", "drive_inertia:no", "belt"),
)
"""In labels of what is not true of the robot."""


# -- what values are about -------------------------------------------------------------------------


def last_body(arm):
    return arm.description.bodies[2].name


def second_body(arm):
    return arm.description.bodies[1].name


def true_mass(arm, name):
    return mass_of(arm, arm.truth, name)


def ten_of(robot, name):
    """The ten parameters of a body."""
    place = [b.name for b in robot.bodies].index(name)
    return robot.values[robot.inertial_columns[place]]


def mass_of(arm, robot, name):
    return float(ten_of(robot, name)[9])


def total(arm, robot):
    return float(robot.values[robot.inertial_columns[:, 9]].sum())


def centre_of(robot, name):
    return inertia.to_mass_com_inertia(ten_of(robot, name))[1]


def at_most(value, bound):
    return value <= bound + TOLERANCE * (1 + abs(bound))


def box(arm, name, low, high):
    """Around the true centre of mass, by so many metres."""
    centre = centre_of(arm.truth, name)
    return {name: (centre - low, centre + high)}


# -- logs that go with a value ---------------------------------------------------------------------


def in_degrees(frame, arm):
    columns = [c for c in frame if c.startswith(("q_", "theta_"))]
    return frame.assign(**{c: np.rad2deg(frame[c]) for c in columns})


def renamed(frame, arm):
    names = {"t": "stamp"} | {f"q_{j}": f"pos_{j}" for j in arm.joints}
    return frame.rename(columns=names)


def turned(frame, arm):
    column = f"tau_{arm.joints[1]}"
    return frame.assign(**{column: -frame[column]}) if column in frame else frame


def shifted(frame, arm):
    columns = {f"{kind}_{arm.joints[1]}" for kind in ("q", "cmd")} & {*frame}
    return frame.assign(**{column: frame[column] - 0.3 for column in columns})


def without_time(frame, arm):
    return frame.drop(columns="t")


def shuffled(frame, arm):
    return frame.sample(frac=1.0, random_state=0).reset_index(drop=True)


def with_gaps(frame, arm):
    frame = frame.copy()
    frame.loc[frame.index[400:410], f"q_{arm.joints[0]}"] = np.nan
    return frame


def with_corrupt_rows(frame, arm):
    frame = frame.copy()
    frame.loc[frame.index[[500, 900]], f"q_{arm.joints[0]}"] = 1e60
    return frame


def pushed(frame, arm):
    """Somebody leans on the robot for a second."""
    column = next(c for c in frame if c.startswith(("tau_", "cmd_")))
    size = 30.0 if column.startswith("tau_") else 30.0 / KP
    t = frame.get("t", np.arange(len(frame)) / RATE)
    during = (t > 5.0) & (t < 6.0)
    return frame.assign(**{column: frame[column] + size * during})


def motor_side(frame, arm):
    """Motors geared by two: half of the torque, twice the angle."""
    angles = {c: 2.0 * frame[c] for c in frame if c.startswith(("q_", "theta_", "cmd_"))}
    torques = {f"tau_{j}": frame[f"tau_{j}"] / 2.0 for j in arm.joints if f"tau_{j}" in frame}
    return frame.assign(**angles, **torques)


PER_KELVIN = 0.04, 0.02, 30.0
"""Of the second joint: dry [N m/K] and viscous friction [N m s/rad/K], and where they are zero."""


def warming(frame, arm):
    """The second motor is 20 degrees warmer at the end of the log, which has its temperature."""
    joint = arm.joints[1]
    share = np.linspace(0.0, 1.0, len(frame))
    warmth = 20.0 + 20.0 * share
    speed = np.gradient(frame[f"q_{joint}"].to_numpy(), 1 / RATE)
    dry, viscous, origin = PER_KELVIN
    torque = (warmth - origin) * (dry * np.tanh(speed / 0.005) + viscous * speed)
    column, unit = (f"tau_{joint}", 1.0) if f"tau_{joint}" in frame else (f"cmd_{joint}", KP)
    changes = {column: frame[column] + torque / unit, f"temperature_{joint}": warmth}
    return frame.assign(**changes)


def per_kelvin(share):
    dry, viscous, origin = PER_KELVIN
    law = share * dry, share * viscous, origin
    return lambda arm: {"friction_per_kelvin": {arm.joints[1]: law}}


def without_hand_torque(frame, arm):
    return frame.drop(columns=[f"{s}_{arm.joints[-1]}" for s in ("tau", "cmd")], errors="ignore")


OF_SENSORS = (in_degrees, turned, shifted, motor_side)
"""Changes that sensors make while the robot runs, besides those of the file."""

LAST = {warming: -1, motor_side: 1, in_degrees: 2, renamed: 3}
"""Changes that come before or after others: friction needs speeds, zeros are those of joints,
units those of columns."""

# -- the values ------------------------------------------------------------------------------------


def fixed(**options):
    return lambda arm: options


def geared(arm):
    """By two at every joint; a servo's gain is that of its motor."""
    options = {"transmission": 2.0 * np.eye(len(arm.joints))}
    gains = arm.options.get("gains", {})
    return options | ({"gains": {j: (kp / 4.0, share) for j, (kp, share) in gains.items()}} if gains
                      else {})  # fmt: skip


def right_masses(arm):
    return {second_body(arm): (0.9 * true_mass(arm, second_body(arm)),
                               1.1 * true_mass(arm, second_body(arm)))}  # fmt: skip


def keeps_right_masses(arm, robot):
    low, high = right_masses(arm)[second_body(arm)]
    mass = mass_of(arm, robot, second_body(arm))
    return at_most(mass, high) and at_most(low, mass)


def mass_at_most(share):
    """Of the last body, as a share of the truth."""
    bound = lambda arm: share * true_mass(arm, last_body(arm))  # noqa: E731
    return (
        lambda arm: {"mass": {last_body(arm): (None, bound(arm))}},
        unchanged,
        lambda arm, robot: at_most(mass_of(arm, robot, last_body(arm)), bound(arm)),
    )


def total_at_most(share):
    """As a share of the truth."""
    bound = lambda arm: share * total(arm, arm.truth)  # noqa: E731
    return (
        lambda arm: {"total_mass": bound(arm)},
        unchanged,
        lambda arm, robot: at_most(total(arm, robot), bound(arm)),
    )


def keeps_box(low, high):
    def kept(arm, robot):
        lower, upper = box(arm, last_body(arm), low, high)[last_body(arm)]
        centre = centre_of(robot, last_body(arm))
        return all(at_most(*pair) for pair in [*zip(centre, upper, strict=True),
                                               *zip(lower, centre, strict=True)])  # fmt: skip

    return kept


def pair_of_bodies(arm):
    return [second_body(arm), last_body(arm)]


def equal_masses(arm, robot):
    one, other = (mass_of(arm, robot, name) for name in pair_of_bodies(arm))
    return abs(one - other) <= 1e-6 * one


def known_mass(share):
    value = lambda arm: share * true_mass(arm, last_body(arm))  # noqa: E731
    return (
        lambda arm: {"known": {last_body(arm): [*MASS_ONLY, value(arm)]}},
        unchanged,
        lambda arm, robot: abs(mass_of(arm, robot, last_body(arm)) - value(arm)) <= 1e-6,
    )


def known_body(arm):
    return {"known": {last_body(arm): ten_of(arm.truth, last_body(arm))}}


def small_moment(factor):
    """A convex constraint: the first moment of the last body, as a share of the truth's."""

    def size(arm):
        return factor * float(np.linalg.norm(ten_of(arm.truth, last_body(arm))[6:9]))

    def options(arm):
        import cvxpy as cp

        name, bound = last_body(arm), size(arm)
        return {
            "constraints": lambda p: [
                cp.norm(cp.hstack([p[name, s] for s in ("lx", "ly", "lz")])) <= bound
            ]
        }

    def kept(arm, robot):
        return at_most(float(np.linalg.norm(ten_of(robot, last_body(arm))[6:9])), size(arm))

    return options, unchanged, kept


@cache
def earlier_fit(robot):
    arm = world(robot)
    return feasid.fit(arm.log, arm.description, diagnose=False, **arm.options)


def earlier_prior(arm):
    return {"prior": feasid.GaussianPrior.of(earlier_fit(arm.robot))}


def inertials(arm, bodies):
    """Of a robot with these bodies, after those of motors behind springs, which have no mass."""
    robot = load(arm.robot, bodies)
    motors = np.zeros(10 * len(arm.truth.elastic))
    return np.r_[motors, robot.values[robot.inertial_columns].ravel()]


def true_reference(arm):
    return {"reference": inertials(arm, true_bodies())}


def heavy_reference(arm):
    bodies = {name: 2.0 * ten for name, ten in described_bodies().items()}
    return {"reference": inertials(arm, bodies)}


def ellipsoid(arm, name, size):
    return {name: (centre_of(arm.truth, name), np.full(3, size))}


CHOICES = [
    Choice("default", fixed()),
    # rows
    Choice("columns:renamed", fixed(columns={"t": "stamp", "q": "pos_{}"}), renamed),
    Choice("topic:named", fixed(topic="/joint_states")),
    Choice("rate:without time", fixed(rate=RATE), without_time),
    Choice("corrupt:drop", fixed(corrupt="drop"), with_corrupt_rows),
    Choice("corrupt:error", fixed(corrupt="error"), with_corrupt_rows),
    Choice("nan:drop", fixed(nan="drop-segments"), with_gaps),
    Choice("nan:error", fixed(nan="error"), with_gaps),
    Choice("sort:shuffled", fixed(sort=True), shuffled),
    Choice("exclude:a push", fixed(exclude=[[4.5, 6.5]]), pushed),
    Choice("exclude:no push", fixed(exclude=()), pushed),
    Choice("measured:but the last", lambda arm: {"measured": arm.joints[:-1]}, without_hand_torque),
    Choice("cutoff:3", fixed(cutoff=3.0)),
    Choice("cutoff:20", fixed(cutoff=20.0)),
    Choice("cutoff:none", fixed(cutoff=False)),
    Choice("filter_torque:no", fixed(filter_torque=False, filtering="signals")),
    Choice("derivative_cutoff:15", fixed(derivative_cutoff=15.0)),
    Choice("filtering:signals", fixed(filtering="signals")),
    Choice("rest:0.01", fixed(rest=0.01)),
    Choice("trim:1", fixed(trim=1.0)),
    Choice("decimate:4", fixed(decimate=4, filtering="signals")),
    Choice("robust:huber", fixed(robust="huber")),
    Choice("robust:tukey and a push", fixed(robust="tukey"), pushed),
    Choice("block:1", fixed(robust="huber", block=1.0)),
    Choice("diagnose:no", fixed(diagnose=False)),
    # signals
    Choice("units:degrees", fixed(units={"q": "deg"}), in_degrees),
    Choice("units:a sign", lambda arm: {"units": {f"tau_{arm.joints[1]}": -1}}, turned),
    Choice("transmission:geared", geared, motor_side),
    Choice("offsets:one joint", lambda arm: {"offsets": {arm.joints[1]: 0.3}}, shifted),
    Choice("delay:8 ms", fixed(delay=-0.008)),
    Choice("delay:-8 ms", fixed(delay=0.008)),
    Choice("friction_per_kelvin:right", per_kelvin(1.0), warming),
    Choice("friction_per_kelvin:half", per_kelvin(0.5), warming),
    Choice("calibration:none", fixed(calibration=None)),
    Choice("calibration:gain only", fixed(calibration={"gain": 0.05})),
    Choice("imu:of the base", fixed(imu=feasid.floating.Imu("base"))),
    Choice("contacts:feet", fixed(contacts=FEET)),
    Choice("servo:gains", lambda arm: {
        "servo": {"kp": dict.fromkeys(arm.joints, KP), "delay": 0.5 / RATE},
        "command": None, "gains": None}),
    Choice("command:position", fixed(command="position")),
    Choice("servo_terms:integral", fixed(command="position", servo_terms=("integral",))),
    Choice("gains:one joint", lambda arm: {"command": "position",
                                           "gains": {arm.joints[0]: (KP, 0.01)}}),
    Choice("moments:weighed", lambda arm: {
        "command": "position", "moments": [(arm.joints[1], {}, 1.0, 0.1)]}),
    Choice("loaded:a load", lambda arm: {
        "command": "position", "loaded": arm.loaded, "load": LOAD}),
    Choice("load:alone", fixed(command="position", load=LOAD)),
    # model
    Choice("couplings:belt", lambda arm: {"couplings": {
        "belt": {arm.joints[0]: 1.0, arm.joints[1]: -1.0}}}),
    Choice("elastic:second joint", lambda arm: {"elastic": [arm.joints[1]]}),
    Choice("passive:wrong last joint", lambda arm: {"passive": arm.joints[-1:]},
           without_hand_torque),
    Choice("friction:none", fixed(friction=())),
    Choice("friction:viscous", fixed(friction=("viscous",))),
    Choice("friction:usual", fixed(friction=("viscous", "coulomb", "offset"))),
    Choice("drive_inertia:no", fixed(drive_inertia=False)),
    Choice("candidates:stribeck", fixed(candidates=("stribeck",))),
    Choice("candidates:none", fixed(candidates=())),
    Choice("mass:right", lambda arm: {"mass": right_masses(arm)}, unchanged, keeps_right_masses),
    Choice("mass:half", *mass_at_most(0.5)),
    Choice("mass:a tenth", *mass_at_most(0.1)),
    Choice("total_mass:right", *total_at_most(1.02)),
    Choice("total_mass:below the description", *total_at_most(0.85)),
    Choice("total_mass:a third", *total_at_most(0.33)),
    Choice("mass_sums:right", lambda arm: {"mass_sums": {"two": (
        pair_of_bodies(arm), None, 1.02 * sum(true_mass(arm, n) for n in pair_of_bodies(arm)))}}),
    Choice("com_box:right", lambda arm: {"com_box": box(arm, last_body(arm), 0.02, 0.02)},
           unchanged, keeps_box(0.02, 0.02)),
    Choice("com_box:wrong", lambda arm: {"com_box": box(arm, last_body(arm), 0.1, -0.05)},
           unchanged, keeps_box(0.1, -0.05)),
    Choice("com_ellipsoid:right", lambda arm: {
        "com_ellipsoid": ellipsoid(arm, last_body(arm), 0.03)}),
    Choice("com_cylinder:right", lambda arm: {"com_cylinder": {last_body(arm): (
        *(centre_of(arm.truth, last_body(arm)) + np.outer([-0.1, 0.1], [0, 0, 1])), 0.04)}}),
    Choice("com_hull:right", lambda arm: {"com_hull": {last_body(arm): (
        centre_of(arm.truth, last_body(arm))
        + 0.1 * np.array([[-1, -1, -1], [2, 0, 0], [0, 2, 0], [0, 0, 2]]))}}),
    Choice("inertia_ellipsoid:right", lambda arm: {
        "inertia_ellipsoid": ellipsoid(arm, last_body(arm), 0.3)}),
    Choice("inertia_ellipsoid:small", lambda arm: {
        "inertia_ellipsoid": ellipsoid(arm, last_body(arm), 0.03)}),
    Choice("linear:right", lambda arm: {"linear": {"light": (
        {(last_body(arm), "m"): 1.0}, None, 1.1 * true_mass(arm, last_body(arm)))}}),
    Choice("constraints:right", *small_moment(1.2)),
    Choice("constraints:wrong", *small_moment(0.3)),
    Choice("known:true mass", *known_mass(1.0)),
    Choice("known:wrong mass", *known_mass(0.4)),
    Choice("known:true body", known_body),
    Choice("equal:wrong", lambda arm: {"equal": [tuple(pair_of_bodies(arm))]}, unchanged,
           equal_masses),
    Choice("mirrored:wrong", lambda arm: {"mirrored": [(*pair_of_bodies(arm), "y")]}, unchanged,
           equal_masses),
    Choice("consistency:semi", fixed(consistency="semi")),
    Choice("plausible:no", fixed(plausible=False)),
    Choice("solver:SCS", fixed(solver="SCS")),
    Choice("solver:CLARABEL without a prior", fixed(solver="CLARABEL", prior=None)),
    Choice("weights:wls", fixed(weights="wls")),
    Choice("weights:none", fixed(weights=None)),
    Choice("weights:one joint", lambda arm: {"weights": {arm.joints[0]: 5.0}}),
    Choice("prior:none", fixed(prior=None)),
    Choice("prior:euclidean", fixed(prior="euclidean")),
    Choice("prior:scaled", fixed(prior="scaled")),
    Choice("prior:earlier fit", earlier_prior),
    Choice("prior_weight:evidence", fixed(prior_weight="evidence")),
    Choice("prior_weight:1e-3", fixed(prior_weight=1e-3)),
    Choice("prior_weight:1e6", fixed(prior_weight=1e6)),
    Choice("prior_weight:scaled, 1e6", fixed(prior="scaled", prior_weight=1e6)),
    Choice("prior_weight:euclidean, 1e6", fixed(prior="euclidean", prior_weight=1e6)),
    Choice("reference:true", true_reference),
    Choice("reference:heavy", heavy_reference),
    Choice("slack:0.01", fixed(prior=None, slack=0.01)),
]  # fmt: skip


# -- what takes a value ----------------------------------------------------------------------------

GROUPS = (
    {  # which rows of the log count, and how they are formed
        *("columns", "topic", "rate", "corrupt", "nan", "sort", "exclude", "measured"),
        *("cutoff", "filter_torque", "derivative_cutoff", "filtering", "rest", "trim", "decimate"),
        *("robust", "block", "diagnose"),
    },
    {  # what sensors and servos make of the truth
        *("units", "transmission", "offsets", "delay", "friction_per_kelvin", "calibration"),
        *("imu", "contacts", "servo", "command", "servo_terms", "gains", "moments"),
        *("loaded", "load"),
    },
    {  # which bodies are possible
        *("mass", "total_mass", "mass_sums", "com_box", "com_ellipsoid", "com_cylinder"),
        *("com_hull", "inertia_ellipsoid", "linear", "constraints", "known", "equal", "mirrored"),
        *("consistency", "plausible"),
    },
    {  # which parameters there are, and how they are weighed
        *("couplings", "elastic", "passive", "friction", "drive_inertia", "candidates"),
        *("solver", "weights", "prior", "prior_weight", "reference", "slack"),
    },
)
"""Every option of a fit, in one group each: a row has one option of a group at most."""


def group_of(choice):
    """Number of the group of an option."""
    return next((k for k, names in enumerate(GROUPS) if choice.option in names), 0)


OF_COMMANDS = {*CommandOptions.__annotations__, "servo"}

REFUSED = {"corrupt:error", "nan:error", "load:alone", "prior:euclidean", "prior:scaled"}
"""Values that are refused with every robot and log."""

OF_SIGNALS = {"filter_torque:no", "filtering:signals", "decimate:4", "cutoff:none"}
"""Values with which the equations are not filtered."""

OF_EQUATIONS = {"candidates", "robust", "block"}

OF_JOINTS = {"measured", "transmission"}
"""Options that no coupled joints take."""


def is_taken(choice, robot, log):
    """Whether a fit of this robot and log is made with a value, as far as the tables say."""
    option, commands = choice.option, log == "commands"
    if choice.label in REFUSED or (commands and choice.label in OF_SIGNALS):
        return False
    if robot == "floating" and (choice.label == "cutoff:none" or option in NOT_FLOATING):
        return False
    needs = {
        **dict.fromkeys(OF_COMMANDS, commands and robot in ("serial", "rotors")),
        **dict.fromkeys(("imu", "contacts"), robot == "floating"),
        **dict.fromkeys(OF_JOINTS, robot in ("serial", "rotors") and not commands),
        "elastic": robot == "elastic",
        "passive": robot in ("serial", "rotors") and not commands,
        "friction": not commands or choice.label != "friction:none",
        **dict.fromkeys(("delay", "drive_inertia", "couplings"), not commands),
        "friction_per_kelvin": not commands,
    }
    return needs.get(option, True)


NOT_FLOATING = {*LogOptions.__annotations__} - {*FloatingOptions.__annotations__, *USED} | {
    "friction_per_kelvin"
}


def go_together(choices):
    """Whether one fit takes these values, of which no two are of one group."""
    labels, options = {c.label for c in choices}, {c.option for c in choices}
    conflicts = (
        ("default" in options and len(options) > 1),
        (labels & OF_SIGNALS and options & OF_EQUATIONS),
        ("couplings" in options and options & {*OF_JOINTS, *OF_COMMANDS, "robust", "block"}),
        ("measured" in options and options & {"transmission", *OF_COMMANDS, "couplings"}),
    )
    return not any(conflicts) and len({*map(group_of, choices)}) == len(labels)
