"""The tables of options, by the step that takes them.

The tables are typed dictionaries: a function that takes ``**options: Unpack[FitOptions]`` has
exactly these keywords for a type checker and an editor.
"""

# No "from __future__ import annotations": the annotations are read when the program runs.

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict

from feasid.options import forms
from feasid.options.option import Option
from feasid.robot.joint_terms import FRICTION, FURTHER_FRICTION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:
    ArrayLike = Any

Bounds: TypeAlias = tuple[float | None, float | None]


class ReadOptions(TypedDict, total=False):
    """Options for reading the columns of a log."""

    columns: Annotated[
        Mapping[str, Any] | None,
        Option("mapping", "other names: t=stamp, tau_elbow=current3, q=position_{}", example="t=t",
               form=forms.COLUMN),
    ]  # fmt: skip
    units: Annotated[
        Mapping[str, Any] | None,
        Option("mapping", "where not SI: q=deg, q_elbow=deg; a number is the factor", example="t=s",
               form=forms.UNIT),
    ]  # fmt: skip
    topic: Annotated[
        str | None,
        Option("value", "topic of a bag; None those with the robot's joints",
               example="/joint_states", form=forms.TEXT),
    ]  # fmt: skip
    rate: Annotated[
        float | None,
        Option("number", "sampling rate of a log without time", None, "Hz", 1e-3, 1e7,
               example="200"),
    ]  # fmt: skip
    transmission: Annotated[
        ArrayLike | None,
        Option("value", "matrix T of a motor-side log: q_motor = T q, tau = T' tau_motor",
               example="[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", form=forms.MATRIX),
    ]  # fmt: skip
    corrupt: Annotated[
        Literal["error", "drop"],
        Option("choice", "rows with numbers beyond 1e50, or that repeat the row before: error, or "
               "drop and note", "error", choices=("error", "drop"), example="drop"),
    ]  # fmt: skip
    offsets: Annotated[
        Mapping[str, float] | None,
        Option("mapping", "added to q per joint, after the transmission", None, "rad or m",
               example="shoulder=0", form=forms.NUMBER),
    ]  # fmt: skip

    servo: Annotated[
        Any,
        Option("value", "known gains of servos, to convert commands cmd_<joint> to torques: kp by "
               "joint, delay [s], law, terms", form=forms.SERVO,
               example='{"kp": {"shoulder": 18, "slide": 9}, "delay": 0.004}'),
    ]  # fmt: skip


class SignalOptions(TypedDict, total=False):
    """Options for filtering and cutting the signals of a log."""

    cutoff: Annotated[
        float | bool | None,
        Option("number", "low-pass; None 8 Hz for equations, from the spectrum for signals; False "
               "none", None, "Hz", 1e-3, special=(False,), example="20"),
    ]  # fmt: skip
    filter_torque: Annotated[
        bool,
        Option("flag", "the same low-pass on the torques", True,
               needs=("filtering", ("signals", None)), example="no"),
    ]  # fmt: skip
    trim: Annotated[
        float | None,
        Option("number", "cut from both ends of a segment; None one period of the cut-off", None,
               "s", 0.0, example="0.1"),
    ]  # fmt: skip
    decimate: Annotated[
        int | None,
        Option("count", "keep every N-th sample after filtering", None, "", 1,
               needs=("filtering", ("signals", None)), example="2"),
    ]  # fmt: skip
    nan: Annotated[
        Literal["error", "drop-segments"],
        Option("choice", "handling of cells without a number", "error",
               choices=("error", "drop-segments"), example="drop-segments"),
    ]  # fmt: skip
    sort: Annotated[bool, Option("flag", "sort rows by time within each run", False, example="no")]
    exclude: Annotated[
        Any,
        Option("value", "rows to leave out: a column, a mask or intervals (start, end) in s from "
               "the first row", (), example="[[0.0, 0.1]]", form=forms.ROWS),
    ]  # fmt: skip
    delay: Annotated[
        float,
        Option("number", "time by which torques are ahead of the motion", 0.0, "s",
               example="0.001"),
    ]  # fmt: skip
    rest: Annotated[
        float | None,
        Option("number", "speed below which a joint rests; None 1e-3 for filtered signals, else 0",
               None, "rad/s or m/s", 0.0, example="0.002"),
    ]  # fmt: skip
    filtering: Annotated[
        Literal["equations", "signals"] | None,
        Option("choice", "equations: filter both sides; signals: filter before the regressor is "
               "formed; None equations for fits, else signals", choices=("equations", "signals"),
               example="equations"),
    ]  # fmt: skip
    derivative_cutoff: Annotated[
        float | None,
        Option("number", "low-pass before derivatives only; None 40, at most .4 of the rate", None,
               "Hz", 1e-3, needs=("filtering", ("equations", None)), example="40"),
    ]  # fmt: skip


class FloatingOptions(TypedDict, total=False):
    """Contents of the log of a robot with a floating base besides its joints."""

    imu: Annotated[
        Any,
        Option("value", "link, rotation and position of the IMU on the base; None uses the pose of "
               "the base", form=forms.IMU),
    ]  # fmt: skip
    contacts: Annotated[
        Mapping[str, Any] | None,
        Option("mapping", "where each logged force acts: a link, or body, position, axes",
               form=forms.TOUCH),
    ]  # fmt: skip


class LogOptions(ReadOptions, SignalOptions, FloatingOptions, total=False):
    """From a log to runs of position, velocity, acceleration and torque."""


class CouplingOptions(TypedDict, total=False):
    """Options on motors that move several joints."""

    couplings: Annotated[
        Mapping[str, Mapping[str, float]] | None,
        Option("mapping", "motors that move several joints, each with inertia and friction: name "
               "-> factor per joint", example='belt={"shoulder": 1, "slide": -2}',
               form=forms.FACTORS),
    ]  # fmt: skip


class DiagnoseOptions(LogOptions, CouplingOptions, total=False):
    """Options of the diagnosis of a log."""


class ReplayOptions(ReadOptions, CouplingOptions, total=False):
    """Options for replaying a log."""


class TermOptions(CouplingOptions, total=False):
    """Options on the joint terms that are fitted."""

    friction: Annotated[
        Sequence[str] | None,
        Option("words", "friction terms of every joint; none for rigid bodies; None as the robot "
               "declares, else viscous, coulomb, offset and those that cross-validation selects",
               choices=(*FRICTION,), example="viscous,coulomb"),
    ]  # fmt: skip
    drive_inertia: Annotated[
        bool | None,
        Option("flag", "a drive inertia per joint; None as declared, else yes", special=(None,),
               example="yes"),
    ]  # fmt: skip


class ChoiceOptions(TypedDict, total=False):
    """Options on the joint terms that a log may select."""

    candidates: Annotated[
        Sequence[str] | None,
        Option("words", "optional friction terms, selected per joint by cross-validation; None "
               "sqrt and load, if the robot declares none; () none",
               choices=(*FURTHER_FRICTION, "ripple"),
               needs=("filtering", ("equations", None)), example="stribeck,direction"),
    ]  # fmt: skip


class MeasuredOptions(TypedDict, total=False):
    """Options on the joints that have equations."""

    measured: Annotated[
        Sequence[str] | None,
        Option("words", "joints with measured torques; equations and joint terms of the others are "
               "left out; None all", form=forms.NAMES, example="shoulder,slide"),
    ]  # fmt: skip


class SolverOptions(TypedDict, total=False):
    """The solver of convex programs."""

    solver: Annotated[
        Any,
        Option("value", "CVXPY name of the only solver to use, such as SCS or MOSEK; None "
               "Clarabel, then SCS", form=forms.SOLVER, example="CLARABEL"),
    ]  # fmt: skip


class BoundOptions(TypedDict, total=False):
    """Constraints on the bodies besides their physical consistency."""

    mass: Annotated[
        Mapping[str, Bounds] | None,
        Option("mapping", "bounds per body: (lower, upper)", None, "kg", example="upper=[0.1, 9]",
               form=forms.BOUNDS),
    ]  # fmt: skip
    total_mass: Annotated[
        float | Bounds | None,
        Option("value", "upper bound, or (lower, upper), of all moving bodies", None, "kg",
               example="30", form=forms.MASS),
    ]  # fmt: skip
    mass_sums: Annotated[
        Mapping[str, tuple[Sequence[str], float | None, float | None]] | None,
        Option("mapping", "bounds on sums of masses: name -> (bodies, lower, upper)", None, "kg",
               example='{"both": [["upper", "rod"], 0, 9]}', form=forms.SUM),
    ]  # fmt: skip
    com_box: Annotated[
        Mapping[str, tuple[ArrayLike, ArrayLike]] | None,
        Option("mapping", "centre of mass in a box: two corners in the body's frame", None, "m",
               example="upper=[[-1, -1, -1], [1, 1, 1]]", form=forms.BOX),
    ]  # fmt: skip
    com_ellipsoid: Annotated[
        Mapping[str, tuple[ArrayLike, ArrayLike]] | None,
        Option("mapping", "centre of mass in an ellipsoid: centre, semi-axes", None, "m",
               example="upper=[[0, 0, 0], [1, 1, 1]]", form=forms.ELLIPSOID),
    ]  # fmt: skip
    com_cylinder: Annotated[
        Mapping[str, tuple[ArrayLike, ArrayLike, float]] | None,
        Option("mapping", "centre of mass in a cylinder: start, end, radius", None, "m",
               example="upper=[[0, 0, -1], [0, 0, 1], 0.5]", form=forms.CYLINDER),
    ]  # fmt: skip
    com_hull: Annotated[
        Mapping[str, ArrayLike] | None,
        Option("mapping", "centre of mass in the convex hull of points", None, "m",
               example="upper=[[-1, -1, -1], [2, 0, 0], [0, 2, 0], [0, 0, 2]]", form=forms.POINTS),
    ]  # fmt: skip
    inertia_ellipsoid: Annotated[
        Mapping[str, tuple[ArrayLike, ArrayLike]] | None,
        Option("mapping", "all of the mass in an ellipsoid: centre, semi-axes", None, "m",
               example="upper=[[0, 0, 0], [2, 2, 2]]", form=forms.ELLIPSOID),
    ]  # fmt: skip
    linear: Annotated[
        Mapping[str, tuple[Mapping[tuple[str, str], float], float | None, float | None]] | None,
        Option("mapping", "any linear bound: name -> (coefficients by (body, symbol), low, high)",
               form=forms.LINEAR),
    ]  # fmt: skip
    constraints: Annotated[
        Callable[[Any], Any] | None,
        Option("value", "a function of the standard parameters p that returns CVXPY constraints on "
               'p["link", "m"], p["link"].pseudo_inertia, p.base and such; in Python only',
               form=forms.FUNCTION),
    ]  # fmt: skip
    known: Annotated[
        Mapping[str, ArrayLike] | None,
        Option("mapping", "ten parameters per body that are known; NaN where one is not",
               example="wheel=[0.001, 0, 0, 0.001, 0, 0.001, 0, 0, 0, 0.4]", form=forms.KNOWN),
    ]  # fmt: skip
    equal: Annotated[
        Sequence[tuple[str, str]],
        Option("value", "pairs of bodies with the same parameters", (),
               example='[["rod", "wheel"]]', form=forms.PAIRS),
    ]  # fmt: skip
    mirrored: Annotated[
        Sequence[tuple[str, str, str]],
        Option("value", "pairs of bodies that mirror each other, and the axis", (),
               example='[["rod", "wheel", "y"]]', form=forms.MIRRORS),
    ]  # fmt: skip


class SetOptions(BoundOptions, total=False):
    """Meaning of "feasible"."""

    consistency: Annotated[
        Literal["full", "semi"],
        Option("choice", "condition on every body's inertia: that of the pseudo-inertia, or the "
               "weaker 6x6 one", "full", choices=("full", "semi"), example="semi"),
    ]  # fmt: skip


LAWS = ("position", "velocity", "current")
"""Quantities that a command may specify."""

SERVO_TERMS = ("integral", "rate", "gravity", "weight")
"""What a servo may do besides its proportional gain: integrate the error [1/s], act on the rate of
the command behind a low-pass [s], add the weight that the description has [rad / (N m)], all times
kp; and carry a share of the robot's own weight."""


class CommandOptions(TypedDict, total=False):
    """Commands in columns cmd_<joint> of logs without torques, and what is known of the servos."""

    command: Annotated[
        Literal["position", "velocity", "current"] | None,
        Option("choice", "content of the columns cmd_<joint> of a log without torques; gains and "
               "delay of the servos are identified", choices=LAWS, example="position"),
    ]  # fmt: skip
    servo_terms: Annotated[
        Sequence[str] | None,
        Option("words", "terms of servos besides kp and kd: integral of the error, rate of the "
               "command, described gravity, share of the robot's weight; None selected by evidence",
               choices=SERVO_TERMS, needs=("command", ("position",)), example="integral"),
    ]  # fmt: skip
    gains: Annotated[
        Mapping[str, tuple[float, float]] | None,
        Option("mapping", "trusted gains by joint: (kp, relative standard error)",
               needs=("command", LAWS), form=forms.TRUSTED, example="shoulder=[18, 0.02]"),
    ]  # fmt: skip
    moments: Annotated[
        Sequence[tuple[str, Mapping[str, float], float, float]] | None,
        Option("value", "weighed gravity moments: (joint, posture by joint, moment, standard "
               "error) [rad or m, N m or N]", needs=("command", LAWS), form=forms.MOMENTS,
               example='[["shoulder", {"slide": 0.1}, 1.2, 0.02]]'),
    ]  # fmt: skip
    loaded: Annotated[
        Any,
        Option("value", "a second log, of the robot with a known load on its last body",
               needs=("command", LAWS), example="loaded.csv"),
    ]  # fmt: skip
    load: Annotated[
        Any,
        Option("value", "the load: a Payload, or its ten parameters in the last body's frame",
               needs=("command", LAWS), form=forms.LOAD,
               example="[1e-4, 0, 0, 1e-4, 0, 1e-4, 0, 0, 0.01, 0.2]"),
    ]  # fmt: skip


PLAUSIBLE = Option(
    "flag",
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

    weights: Annotated[
        str | Mapping[str, float] | ArrayLike | None,
        Option("value", "weights of the equations: noise (estimated, with less weight on slow "
               "rows), wls (by joint; biased), or a factor per joint; "
               "None weighs all alike", "noise",
               example="wls", special=(None,), form=forms.WEIGHTS),
    ]  # fmt: skip
    robust: Annotated[
        Literal["huber", "tukey"] | None,
        Option("choice", "reduce the weight of segments that fit much worse, such as collisions",
               choices=("huber", "tukey"),
               needs=("filtering", ("equations", None)), example="huber"),
    ]  # fmt: skip
    block: Annotated[
        float,
        Option("number", "length of these segments", 0.5, "s", 0.0, open=True,
               needs=("robust", ("huber", "tukey")), example="0.25"),
    ]  # fmt: skip
    prior: Annotated[
        Any,
        Option("value", "distance to the reference: entropic, euclidean (squared differences in "
               "SI), scaled (in units of each body), or a feasid.Prior such as "
               "feasid.GaussianPrior.of(earlier_fit); None without", "entropic", special=(None,),
               form=forms.PRIOR, example="entropic"),
    ]  # fmt: skip
    prior_weight: Annotated[
        float | Literal["evidence"] | None,
        Option("number", "weight of the prior in units of the whitened residual, or evidence; None "
               "the evidence's, at most 10", None, "", 1e-6, 1e6, special=("evidence",),
               needs=("prior", ("entropic", ...)), example="1"),
    ]  # fmt: skip
    reference: Annotated[
        ArrayLike | None,
        Option("value", "ten parameters per body as reference of the prior; None the description's",
               needs=("prior", ("entropic", ...)), form=forms.GUESS,
               example="[1, 0, 0, 1, 0, 1, 0, 0, 0, 1]"),
    ]  # fmt: skip
    plausible: Annotated[bool, PLAUSIBLE]
    slack: Annotated[
        float,
        Option("number", "without a prior, share of the residual given up for a model closer to "
               "the description", 0.0, low=0.0, high=100.0, needs=("prior", (None,)),
               example="0.01"),
    ]  # fmt: skip
    calibration: Annotated[
        Mapping[str, float] | Literal["usual"] | None,
        Option("mapping", "standard deviations of small errors of the log that the fit estimates "
               "and corrects: tilt [rad], zero [rad or m], gain, delay [samples]; 0 leaves one "
               "out; None corrects none", "usual", special=("usual", None), form=forms.WIDTH,
               example="gain=0.05"),
    ]  # fmt: skip
    diagnose: Annotated[
        bool, Option("flag", "look for problems of the log and note them", True, example="no")
    ]


class LoadOptions(LogOptions, TermOptions, total=False):
    """Options for logs with and without a load."""


class ReduceOptions(LoadOptions, ChoiceOptions, MeasuredOptions, total=False):
    """Options that decide what a log is reduced to."""


CONSISTENCY = Option(
    "choice",
    "condition on every body's inertia; None: full, or that of the fit",
    choices=("full", "semi"),
    example="semi",
)


class CheckOptions(BoundOptions, SolverOptions, total=False):
    """Options of the feasibility test."""

    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[
        float,
        Option("number", "absolute margin in SI numbers on every constraint, the paper's epsilon",
               0.0, low=0.0, example="1e-6"),
    ]  # fmt: skip


class CorrectOptions(BoundOptions, SolverOptions, total=False):
    """Options of the closest feasible parameters: distance and constraints."""

    metric: Annotated[
        Literal["euclidean", "weighted", "entropic"],
        Option("choice", "distance of the vectors, of weight @ vector, or of mass distributions",
               "euclidean", choices=("euclidean", "weighted", "entropic"), example="entropic"),
    ]  # fmt: skip
    weight: Annotated[
        ArrayLike | None,
        Option("value", "matrix (rows, nb) or (rows, n), such as the triangle of a regressor",
               needs=("metric", ("weighted",)), form=forms.MATRIX),
    ]  # fmt: skip
    around: Annotated[
        ArrayLike | None,
        Option("value", "strictly feasible parameters (n,) to measure around; None the description",
               needs=("metric", ("entropic",)), form=forms.ROW),
    ]  # fmt: skip
    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[
        float | None,
        Option("number", "absolute margin in SI numbers; None a little, in each body's units", None,
               low=0.0, example="1e-6"),
    ]  # fmt: skip


class RangeOptions(TypedDict, total=False):
    """Options on the models over which ranges are taken."""

    level: Annotated[
        float,
        Option("number", "probability of the chi-square law whose bound is the residual budget",
               0.999, low=0.0, high=1 - 1e-9, open=True, example="0.95"),
    ]  # fmt: skip
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
