"""What can be wrong with a log, a robot or its description: one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass

CLEAN = "none"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How a world differs from the model that a fit assumes; every default is harmless.

    Forces are shares of the joint's RMS torque along a motion, unless said otherwise.
    """

    text: str
    seconds: float = 22.0
    """Length of the log to fit [s]."""
    keep_every: int = 1
    """One row of the 1 kHz log in so many is written."""
    bits: int = 18
    """Encoder counts per 2 pi rad (or per 2 pi m of a sliding joint), as a power of two."""
    jitter: float = 0.0
    """Standard deviation between a row's time stamp and the time of its samples [s]."""
    torque_gain: float = 0.0
    """Each joint's logged torque is multiplied by one plus or minus this."""
    delay: float = 0.0
    """The logged torque is so much later than the logged position [s]."""
    joint_zeros: float = 0.0
    """Each joint's logged position is off by plus or minus this [rad, m], in both logs."""
    tilt: float = 0.0
    """Angle between the base's z axis and the vertical [rad]."""
    tilt_axis: tuple[float, float, float] = (3.0, -1.0, 0.0)
    """The base's axis about which gravity is turned, of any length."""
    cable: float = 0.0
    """Force of a hardening spring at the end of the joint's range, plus 0.3 of it everywhere."""
    ripple: float = 0.0
    """Torque ripple with 100 periods per 2 pi rad, and two thirds of it with 6 periods."""
    stribeck: float = 0.0
    """Dry friction at standstill is larger by this share of itself; it decays over 0.1 rad/s."""
    load_friction: float = 0.0
    """Dry friction per torque [N m / N m] that the links' weight puts on the joint."""
    friction_drift: float = 0.0
    """Friction of the cold joint is larger by this share; it warms up with 12 s."""
    elastic_frequency: float = 0.0
    """Links hang on springs that resonate at this frequency [Hz] with the rotor held; 0: rigid."""
    bristle: float = 0.0
    """Dry friction builds up over this distance [rad, m], as bristles that bend (LuGre); 0: at
    once."""
    hysteresis: float = 0.0
    """Torque of a gear that depends on the path: it turns over within 0.1 rad of a reversal."""
    cogging: float = 0.0
    """Torque of narrow pulses, 11 in 2 pi rad."""
    backlash: float = 0.0
    """Half the free play between rotor and link [rad]; needs `elastic_frequency`."""
    payload: float = 0.0
    """Share of the robot's mass that the last link carries besides what is described."""
    mass_factors: tuple[float, ...] = ()
    """Each described mass and inertia is multiplied by one of these, drawn at random."""
    no_inertials: bool = False
    """The description has no masses."""
    exact_inertials: bool = False
    """The description is the truth."""
    lost_rows: float = 0.02
    """Share of rows that the log to fit has lost."""


FOREIGN: dict[str, Fault] = {
    "lugre": Fault(
        text="friction of bristles (LuGre), with Stribeck's decay", bristle=2e-3, stribeck=0.5
    ),
    "hysteresis": Fault(text="gears with hysteresis", hysteresis=0.08),
    "cogging": Fault(text="cogging in narrow pulses", cogging=0.06),
}
"""Effects of which no search of a participant has a column; elastic joints are another."""

FAULTS: dict[str, Fault] = FOREIGN | {
    CLEAN: Fault(text="nothing is wrong besides the description's inertials"),
    "gain": Fault(text="torque gains off by 5 %", torque_gain=0.05),
    "tilt": Fault(text="base tilted by 3 degrees", tilt=0.05235987755982988),
    "tilt_y": Fault(
        text="base tilted by 3 degrees, mostly about its y axis",
        tilt=0.05235987755982988,
        tilt_axis=(1.0, 3.0, 0.0),
    ),
    "zeros": Fault(text="joint zeros off by 1 degree", joint_zeros=0.017453292519943295),
    "cable": Fault(text="a cable that pulls", cable=0.08),
    "late": Fault(text="torques 2.5 ms late", delay=2.5e-3),
    "jitter": Fault(text="time stamps that jitter by 0.3 ms", jitter=0.3e-3),
    "drift": Fault(text="friction that falls while the joints warm up", friction_drift=0.6),
    "load_friction": Fault(text="friction that grows with the load", load_friction=0.08),
    "stribeck": Fault(text="Stribeck friction", stribeck=1.0),
    "ripple": Fault(text="torque ripple", ripple=0.03),
    "elastic": Fault(text="elastic joints", elastic_frequency=12.0),
    "backlash": Fault(text="joints with play", elastic_frequency=36.0, backlash=1.5e-3),
    "quantised": Fault(text="encoders of 12 bits", bits=12),
    "50hz": Fault(text="a log of 50 rows per second", keep_every=20),
    "5s": Fault(text="a log of 5 s", seconds=5.0),
    "10min": Fault(text="a log of 10 minutes", seconds=600.0),
    "masses_doubled": Fault(text="all described masses twice too large", mass_factors=(2.0,)),
    "masses_mixed": Fault(text="described masses too large or too small", mass_factors=(0.5, 2.0)),
    "no_inertials": Fault(text="a description without masses", no_inertials=True),
    "exact": Fault(text="a description with the true inertials", exact_inertials=True),
    "all_rows": Fault(text="nothing is wrong, and no row is lost", lost_rows=0.0),
    "half_lost": Fault(text="nothing is wrong, and 0.5 % of the rows are lost", lost_rows=0.005),
    "payload": Fault(text="a payload of 15 % that nobody described", payload=0.15),
}
"""All faults by name; the sizes are those of `python -m benchmarks.worlds --list`."""
