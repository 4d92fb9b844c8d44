"""The tables of options, by the step that takes them.

The tables are typed dictionaries: a function that takes ``**options: Unpack[FitOptions]`` has
exactly these keywords for a type checker and an editor.
"""

# No "from __future__ import annotations": the annotations are read when the program runs.

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

import numpy.typing as npt

from feasid.core.kinds import (
    Matrix3,
    Natural,
    NonNegative,
    Positive,
    Vector,
    Vector3,
    array,
    having,
    kind_by_test,
    kind_from_annotation,
    number,
    one_of,
)
from feasid.options.option import Option
from feasid.robot.joint_terms import FRICTION, FURTHER_FRICTION

LAWS = ("position", "velocity", "current")  #: Quantities that a command may specify.

SERVO_TERMS = ("integral", "rate", "gravity", "weight")
"""What a servo may do besides its proportional gain: integrate the error [1/s], act on the rate of
the command behind a low-pass [s], add the weight that the description has [rad / (N m)], all times
kp; and carry a share of the robot's own weight."""

# -- kinds of values -------------------------------------------------------------------------------

Name: TypeAlias = Annotated[str, kind_by_test("a name", lambda v: isinstance(v, str) and bool(v))]
Frequency: TypeAlias = Annotated[float, number(1e-3)]
Matrix: TypeAlias = Annotated[npt.ArrayLike, array("rows", "columns")]
Bounds: TypeAlias = Annotated[
    tuple[float | None, float | None], "(lower, upper), None for no bound"
]
MassSum: TypeAlias = Annotated[
    tuple[Sequence[str], float | None, float | None], "(bodies, lower, upper)"
]
LinearBound: TypeAlias = Annotated[
    tuple[Mapping[str | tuple[str, str], float], float | None, float | None],
    "(coefficients by (body, symbol), lower, upper)",
]
Box: TypeAlias = Annotated[tuple[Vector3, Vector3], "two corners of three numbers"]
Ellipsoid: TypeAlias = Annotated[tuple[Vector3, Vector3 | Matrix3], "(centre, semi-axes)"]
Cylinder: TypeAlias = Annotated[tuple[Vector3, Vector3, float], "(start, end, radius)"]
Points: TypeAlias = Annotated[npt.ArrayLike, array("n", 3), "points of three numbers"]
Bodies: TypeAlias = Annotated[
    Vector | Annotated[npt.ArrayLike, array("n", 10)], "an array of ten numbers per body"
]
Known: TypeAlias = Annotated[
    float | tuple[float, float] | Annotated[npt.ArrayLike, array(10, finite=False)],
    "ten numbers, NaN where one is not known; or for one parameter such as 'rod.m' a number, or "
    "(value, standard error)",
]
Slopes: TypeAlias = Annotated[
    tuple[float, float, float] | tuple[float, float, float, float],
    "(dry, viscous, temperature) or (dry, viscous, temperature, share per K)",
]
TrustedGain: TypeAlias = Annotated[tuple[float, float], "(kp, relative deviation)"]
Moment: TypeAlias = Annotated[
    tuple[str, Mapping[str, float], float, float], "(joint, posture by joint, moment, deviation)"
]
Factors: TypeAlias = Annotated[
    Mapping[str, float],
    kind_by_test(
        "two or more joints with the factor of each, none of them zero",
        lambda v: (
            isinstance(v, Mapping)
            and len(v) > 1
            and all(x and number().accepts(x) for x in v.values())
        ),
    ),
]
Rows: TypeAlias = Annotated[
    Any,
    kind_from_annotation(str | Sequence[bool] | Sequence[tuple[float, float]]),
    "a column, a mask of all rows, or intervals (start, end)",
]
Touch: TypeAlias = Annotated[
    str | Annotated[Any, having("body", "")],
    "a link's name, a ContactSensor, or a mapping with its body",
]
Solver: TypeAlias = Annotated[
    str
    | Annotated[Any, having("solve_via_data", "")]
    | Sequence[tuple[str, str, Callable[..., Any]]],
    "a solver's name",
]
Load: TypeAlias = Annotated[
    Annotated[npt.ArrayLike, array(10)] | Annotated[Any, having("parameters", "")],
    "a Payload or ten numbers",
]
Prior: TypeAlias = Annotated[
    str | Annotated[Any, having("rows", "")], "the name of a prior or a feasid.Prior"
]


class ReadOptions(TypedDict, total=False):
    """Options for reading the columns of a log."""

    columns: Annotated[Mapping[str, str | int] | None, Option(
        "other names: t=stamp, tau_elbow=current3, q=position_{}", example="t=t")]  # fmt: skip
    units: Annotated[Mapping[str, str | float] | None, Option(
        "where not SI: q=deg, q_elbow=deg; a number is the factor", example="t=s")]  # fmt: skip
    topic: Annotated[Name | None, Option(
        "topic of a bag; None those with the robot's joints", example="/joint_states")]  # fmt: skip
    rate: Annotated[Annotated[float, number(1e-3, 1e7)] | None, Option(
        "sampling rate of a log without time", unit="Hz", example="200")]  # fmt: skip
    transmission: Annotated[Matrix | None, Option(
        "matrix T of a motor-side log: q_motor = T q, tau = T' tau_motor",
        example="[[1, 0, 0], [0, 1, 0], [0, 0, 1]]")]  # fmt: skip
    corrupt: Annotated[Literal["error", "drop"], Option(
        "rows with numbers beyond 1e50, or that repeat the row before: error, or drop and "
        "note", "error", example="drop")]  # fmt: skip
    offsets: Annotated[Mapping[str, float] | None, Option(
        "added to q per joint, after the transmission", unit="rad or m",
        example="shoulder=0")]  # fmt: skip
    servo: Annotated[
        Annotated[Any, having("kp", "a servo, or a mapping with its gains kp by joint")] | None,
        Option("known gains of servos, to convert commands cmd_<joint> to torques: kp by joint, "
        "delay [s], law, terms", example='{"kp": {"shoulder": 18, "slide": 9}, "delay": 0.004}'),
    ]  # fmt: skip


class SignalOptions(TypedDict, total=False):
    """Options for filtering and cutting the signals of a log."""

    cutoff: Annotated[Frequency | Literal[False] | None, Option(
        "low-pass; None 8 Hz for equations, from the spectrum for signals; False none",
        unit="Hz", example="20")]  # fmt: skip
    filter_torque: Annotated[bool, Option(
        "the same low-pass on the torques", True, needs=("filtering", ("signals", None)),
        example="no")]  # fmt: skip
    trim: Annotated[NonNegative | None, Option(
        "cut from both ends of a segment; None one period of the cut-off", unit="s",
        example="0.1")]  # fmt: skip
    decimate: Annotated[Natural | None, Option(
        "keep every N-th sample after filtering", needs=("filtering", ("signals", None)),
        example="2")]  # fmt: skip
    nan: Annotated[Literal["error", "drop-segments"], Option(
        "handling of cells without a number", "error", example="drop-segments")]  # fmt: skip
    sort: Annotated[bool, Option("sort rows by time within each run", False, example="no")]
    exclude: Annotated[Rows, Option(
        "rows to leave out: a column, a mask or intervals (start, end) in s from the first "
        "row", (), example="[[0.0, 0.1]]")]  # fmt: skip
    delay: Annotated[float, Option(
        "time by which torques are ahead of the motion", 0.0, "s", example="0.001")]  # fmt: skip
    friction_per_kelvin: Annotated[Mapping[str, Slopes] | None, Option(
        "friction that changes with logged temperatures: joint -> dry and viscous friction "
        "per K, the temperature at which torques are taken, and the share by which both fall "
        "exponentially per K; without it they fall linearly",
        unit="N m, N m s/rad, degrees C, 1/K", example="shoulder=[-0.01, -0.02, 40]")]  # fmt: skip
    rest: Annotated[NonNegative | None, Option(
        "speed below which a joint rests; None 1e-3 for filtered signals, else 0",
        unit="rad/s or m/s", example="0.002")]  # fmt: skip
    filtering: Annotated[Literal["equations", "signals"] | None, Option(
        "equations: filter both sides; signals: filter before the regressor is formed; "
        "None equations for fits, else signals", example="equations")]  # fmt: skip
    derivative_cutoff: Annotated[Frequency | None, Option(
        "low-pass before derivatives only; None 40, at most .4 of the rate", unit="Hz",
        needs=("filtering", ("equations", None)), example="40")]  # fmt: skip


class FloatingOptions(TypedDict, total=False):
    """Contents of the log of a robot with a floating base besides its joints."""

    imu: Annotated[
        Annotated[Any, having("link", "an Imu, or a mapping with its link")] | None,
        Option("link, rotation and position of the IMU on the base; None uses the base's pose"),
    ]
    contacts: Annotated[Mapping[str, Touch] | None, Option(
        "where each logged force acts: a link, or body, position, axes")]  # fmt: skip


class LogOptions(ReadOptions, SignalOptions, FloatingOptions, total=False):
    """From a log to runs of position, velocity, acceleration and torque."""


class CouplingOptions(TypedDict, total=False):
    """Options on what moves the joints besides a motor at each."""

    couplings: Annotated[Mapping[str, Factors] | None, Option(
        "motors that move several joints, each with inertia and friction: name -> factor "
        "per joint", example='belt={"shoulder": 1, "slide": -2}')]  # fmt: skip
    elastic: Annotated[Sequence[str] | None, Option(
        "joints with a spring between motor and link: q_<joint> of the link, theta_<joint> of the "
        "motor, sensor_<joint> the torque between; None none", example="shoulder")]  # fmt: skip
    passive: Annotated[Sequence[str] | None, Option(
        "joints without a motor, as pendulums and casters: their torque is "
        "exactly zero; None none", example="slide")]  # fmt: skip


class DiagnoseOptions(LogOptions, CouplingOptions, total=False):
    """Options of the diagnosis of a log."""


class ReplayOptions(ReadOptions, CouplingOptions, total=False):
    """Options for replaying a log."""


class TermOptions(CouplingOptions, total=False):
    """Options on the joint terms that are fitted."""

    friction: Annotated[Sequence[Annotated[str, one_of(*FRICTION)]] | None, Option(
        "friction terms of every joint; none for rigid bodies; None as the robot declares, "
        "else viscous, coulomb, offset and those that cross-validation selects",
        example="viscous,coulomb")]  # fmt: skip
    drive_inertia: Annotated[bool | None, Option(
        "a drive inertia per joint; None as declared, else yes", example="yes")]  # fmt: skip


class ChoiceOptions(TypedDict, total=False):
    """Options on the joint terms that a log may select."""

    candidates: Annotated[
        Sequence[Annotated[str, one_of(*FURTHER_FRICTION, "ripple")]] | None,
        Option("optional friction terms, selected per joint by cross-validation; None sqrt and "
               "load, if the robot declares none; () none",
               needs=("filtering", ("equations", None)), example="stribeck,direction"),
    ]  # fmt: skip


class MeasuredOptions(TypedDict, total=False):
    """Options on the joints that have equations."""

    measured: Annotated[Annotated[Sequence[str], "a sequence of names"] | None, Option(
        "joints with measured torques; equations and joint terms of the others are left "
        "out; None all", example="shoulder,slide")]  # fmt: skip


class SolverOptions(TypedDict, total=False):
    """The solver of convex programs."""

    solver: Annotated[Solver | None, Option(
        "CVXPY name of the only solver to use, such as SCS or MOSEK; None Clarabel, then "
        "SCS", example="CLARABEL")]  # fmt: skip


class BoundOptions(TypedDict, total=False):
    """Constraints on the bodies besides their physical consistency."""

    mass: Annotated[Mapping[str, Bounds] | None, Option(
        "bounds per body: (lower, upper)", unit="kg", example="upper=[0.1, 9]")]  # fmt: skip
    total_mass: Annotated[float | Bounds | None, Option(
        "upper bound, or (lower, upper), of all moving bodies", unit="kg",
        example="30")]  # fmt: skip
    mass_sums: Annotated[Mapping[str, MassSum] | None, Option(
        "bounds on sums of masses: name -> (bodies, lower, upper)", unit="kg",
        example='{"both": [["upper", "rod"], 0, 9]}')]  # fmt: skip
    com_box: Annotated[Mapping[str, Box] | None, Option(
        "centre of mass in a box: two corners in the body's frame", unit="m",
        example="upper=[[-1, -1, -1], [1, 1, 1]]")]  # fmt: skip
    com_ellipsoid: Annotated[Mapping[str, Ellipsoid] | None, Option(
        "centre of mass in an ellipsoid: centre, semi-axes", unit="m",
        example="upper=[[0, 0, 0], [1, 1, 1]]")]  # fmt: skip
    com_cylinder: Annotated[Mapping[str, Cylinder] | None, Option(
        "centre of mass in a cylinder: start, end, radius", unit="m",
        example="upper=[[0, 0, -1], [0, 0, 1], 0.5]")]  # fmt: skip
    com_hull: Annotated[Mapping[str, Points] | None, Option(
        "centre of mass in the convex hull of points", unit="m",
        example="upper=[[-1, -1, -1], [2, 0, 0], [0, 2, 0], [0, 0, 2]]")]  # fmt: skip
    inertia_ellipsoid: Annotated[Mapping[str, Ellipsoid] | None, Option(
        "all of the mass in an ellipsoid: centre, semi-axes", unit="m",
        example="upper=[[0, 0, 0], [2, 2, 2]]")]  # fmt: skip
    linear: Annotated[Mapping[str, LinearBound] | None, Option(
        "any linear bound: name -> (coefficients by (body, symbol), low, high)")]  # fmt: skip
    constraints: Annotated[Callable[[Any], Any] | None, Option(
        "a function of the standard parameters p that returns CVXPY constraints on "
        'p["link", "m"], p["link"].pseudo_inertia, p.base and such; in Python only')]  # fmt: skip
    known: Annotated[Mapping[str | tuple[str, str], Known] | None, Option(
        "ten parameters per body that are known; NaN where one is not; for one such as rod.m a "
        "number, or in a fit (value, standard error) if it was weighed",
        example="wheel=[0.001, 0, 0, 0.001, 0, 0.001, 0, 0, 0, 0.4]")]  # fmt: skip
    equal: Annotated[Annotated[Sequence[tuple[str, str]], "pairs of bodies"], Option(
        "pairs of bodies with the same parameters", (), example='[["rod", "wheel"]]')]  # fmt: skip
    mirrored: Annotated[
        Annotated[Sequence[tuple[str, str, str]], "triples (body, body, axis)"], Option(
        "pairs of bodies that mirror each other, and the axis", (),
        example='[["rod", "wheel", "y"]]')]  # fmt: skip


class SetOptions(BoundOptions, total=False):
    """Meaning of "feasible"."""

    consistency: Annotated[Literal["full", "semi"], Option(
        "condition on every body's inertia: that of the pseudo-inertia, or the weaker 6x6 "
        "one", "full", example="semi")]  # fmt: skip


class CommandOptions(TypedDict, total=False):
    """Commands in columns cmd_<joint> of logs without torques, and what is known of the servos."""

    command: Annotated[Literal["position", "velocity", "current"] | None, Option(
        "content of the columns cmd_<joint> of a log without torques; gains and delay of "
        "the servos are identified", example="position")]  # fmt: skip
    servo_terms: Annotated[Sequence[Annotated[str, one_of(*SERVO_TERMS)]] | None, Option(
        "terms of servos besides kp and kd: integral of the error, rate of the command, "
        "described gravity, share of the robot's weight; None selected by evidence",
        needs=("command", ("position",)), example="integral")]  # fmt: skip
    gains: Annotated[Mapping[str, TrustedGain] | None, Option(
        "trusted gains by joint: (kp, relative standard error)", needs=("command", LAWS),
        example="shoulder=[18, 0.02]")]  # fmt: skip
    moments: Annotated[Sequence[Moment] | None, Option(
        "weighed gravity moments: (joint, posture by joint, moment, standard error) [rad "
        "or m, N m or N]", needs=("command", LAWS),
        example='[["shoulder", {"slide": 0.1}, 1.2, 0.02]]')]  # fmt: skip
    loaded: Annotated[str | Any, Option(
        "a second log, of the robot with a known load on its last body",
        needs=("command", LAWS), example="loaded.csv")]  # fmt: skip
    load: Annotated[Load | None, Option(
        "the load: a Payload, or its ten parameters in the last body's frame",
        needs=("command", LAWS),
        example="[1e-4, 0, 0, 1e-4, 0, 1e-4, 0, 0, 0.01, 0.2]")]  # fmt: skip


PLAUSIBLE = Option(
    "keep masses within a third and three times the reference's, and inside the shapes of links, "
    "unless the data reject that",
    True,
    example="no",
)


class FitOptions(
    LogOptions,
    TermOptions,
    ChoiceOptions,
    MeasuredOptions,
    CommandOptions,
    SetOptions,
    SolverOptions,
    total=False,
):
    """All options of a fit."""

    weights: Annotated[Literal["noise", "wls"] | Mapping[str, float] | Vector | None, Option(
        "weights of the equations: noise (estimated, with less weight on slow rows), wls "
        "(by joint; biased), or a factor per joint; None weighs all alike", "noise",
        example="wls")]  # fmt: skip
    robust: Annotated[Literal["huber", "tukey"] | None, Option(
        "reduce the weight of segments that fit much worse, such as collisions",
        needs=("filtering", ("equations", None)), example="huber")]  # fmt: skip
    block: Annotated[Positive, Option(
        "length of these segments", 0.5, "s", needs=("robust", ("huber", "tukey")),
        example="0.25")]  # fmt: skip
    prior: Annotated[Prior | None, Option(
        "distance to the reference: entropic, euclidean (squared differences in SI), scaled (in "
        "units of each body), or a feasid.Prior such as feasid.GaussianPrior.of(earlier_fit); "
        "None without", "entropic", example="entropic")]  # fmt: skip
    prior_weight: Annotated[
        Annotated[float, number(1e-6, 1e6)] | Literal["evidence"] | None,
        Option("weight of the prior in units of the whitened residual, or evidence; None the "
               "evidence's, at most 10", needs=("prior", ("entropic", ...)), example="1"),
    ]  # fmt: skip
    reference: Annotated[Bodies | None, Option(
        "ten parameters per body as reference of the prior; None the description's",
        needs=("prior", ("entropic", ...)), example="[1, 0, 0, 1, 0, 1, 0, 0, 0, 1]")]  # fmt: skip
    plausible: Annotated[bool, PLAUSIBLE]
    slack: Annotated[Annotated[float, number(0.0, 100.0)], Option(
        "without a prior, share of the residual given up for a model closer to the "
        "description", 0.0, needs=("prior", (None,)), example="0.01")]  # fmt: skip
    calibration: Annotated[Mapping[str, NonNegative] | Literal["usual"] | None, Option(
        "standard deviations of small errors of the log that the fit estimates and "
        "corrects: tilt [rad], zero [rad or m], gain, delay [samples]; 0 leaves one out; "
        "None corrects none", "usual", example="gain=0.05")]  # fmt: skip
    diagnose: Annotated[bool, Option(
        "look for problems of the log and note them", True, example="no")]  # fmt: skip


class LoadOptions(LogOptions, TermOptions, total=False):
    """Options for logs with and without a load."""


class ReduceOptions(LoadOptions, ChoiceOptions, MeasuredOptions, total=False):
    """Options that decide what a log is reduced to."""


CONSISTENCY = Option(
    "condition on every body's inertia; None: full, or that of the fit", example="semi"
)


class CheckOptions(BoundOptions, SolverOptions, total=False):
    """Options of the feasibility test."""

    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[NonNegative, Option(
        "absolute margin in SI numbers on every constraint, the paper's epsilon", 0.0,
        example="1e-6")]  # fmt: skip


class CorrectOptions(BoundOptions, SolverOptions, total=False):
    """Options of the closest feasible parameters: distance and constraints."""

    metric: Annotated[Literal["euclidean", "weighted", "entropic"], Option(
        "distance of the vectors, of weight @ vector, or of mass distributions",
        "euclidean", example="entropic")]  # fmt: skip
    weight: Annotated[Matrix | None, Option(
        "matrix (rows, nb) or (rows, n), such as the triangle of a regressor",
        needs=("metric", ("weighted",)))]  # fmt: skip
    around: Annotated[Vector | None, Option(
        "strictly feasible parameters (n,) to measure around; None the description",
        needs=("metric", ("entropic",)))]  # fmt: skip
    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[NonNegative | None, Option(
        "absolute margin in SI numbers; None a little, in each body's units",
        example="1e-6")]  # fmt: skip


class RangeOptions(TypedDict, total=False):
    """Options on the models over which ranges are taken."""

    level: Annotated[Annotated[float, number(0.0, 1 - 1e-9, open=True)], Option(
        "probability of the chi-square law whose bound is the residual budget", 0.999,
        example="0.95")]  # fmt: skip
    plausible: Annotated[bool, PLAUSIBLE]


SOUSA_2014: FitOptions = {
    "consistency": "semi",
    "filtering": "signals",
    "cutoff": 2.5,
    "filter_torque": False,
    "friction": ("viscous", "coulomb", "offset"),
    "drive_inertia": True,
    "weights": None,
    "prior": None,
    "slack": 0.0,
    "calibration": None,
}
"""The chain of Sousa and Cortesao (2014), for ``feasid.fit(log, robot, **feasid.SOUSA_2014)``.

Positions pass a third-order low-pass forward and backward, torques pass none; the regressor is
formed of central differences; all equations count alike; and the optimum of feasible least squares
under the 6x6 condition is returned as it is. The cut-off is ten times the highest frequency of the
motion of Table 5; other motions need another:
``{**feasid.SOUSA_2014, "cutoff": 10 * highest}``."""


GROUPS: dict[str, tuple[type, ...]] = {
    "log": (ReadOptions, SignalOptions, MeasuredOptions),
    "joints and friction": (TermOptions, ChoiceOptions),
    "bounds": (SetOptions, SolverOptions),
    "position commands": (CommandOptions,),
    "floating base": (FloatingOptions,),
}
"""Tables of options by subject, for help and reference; others: "estimate"."""
