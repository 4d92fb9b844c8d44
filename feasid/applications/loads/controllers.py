"""A load in the form, frame and units of robot makers.

Every maker describes a load by its mass, its centre of mass and its inertia *about that centre*, in
the frame of the flange; they differ in units, order and axes:

========  ===========================  ======================  ==================================
maker     call                         centre of mass          inertia about the centre
========  ===========================  ======================  ==================================
franka    ``Robot::setLoad`` (libfranka; ``F_x_Cload`` [m]      nine numbers, column-major, along
          ``SetLoad`` in franka_ros)                            the flange's axes [kg m^2]
ur        ``set_target_payload``       offset from the tool    Ixx, Iyy, Izz, Ixy, Ixz, Iyz along
          (URScript)                   mount [m]               the flange's axes [kg m^2]
kuka      ``$LOAD``, ``LOAD_DATA``     X, Y, Z [mm]            principal moments X, Y, Z [kg m^2];
                                                               A, B, C turn to their axes [deg]
kinova    ``SetPayloadInformation``    x, y, z [m]             not taken
          (Kortex)
ros2      a link of a URDF             origin [m]              ixx .. izz along the link's axes
========  ===========================  ======================  ==================================

Sources: libfranka's ``robot.h`` and ``robot_state.h`` (``I_load`` is "with respect to center of
mass"); Universal Robots' script manual, ``set_target_payload``; KUKA System Software's operating
and programming instructions, "Payload data", and the load data of KUKA.PLC mxAutomation; Kinova's
Kortex API, ``ControlConfig.PayloadInformation``; the URDF specification of ``<inertial>``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.core.text import quote_attribute

UR_LARGEST_INERTIA = 133.0
"""Largest absolute value of an inertia component in ``set_target_payload`` [kg m^2] (manual)."""

FRANKA_RATED_PAYLOAD = 3.0  #: Of the Franka Emika Panda and Franka Research 3 [kg] (data sheets).

NOT_COMPENSATED = (
    "The controller's model of a load has mass, centre of mass and inertia only: friction, drag of "
    "a cable or hose and moving parts of a tool remain in its force readings."
)


class Load(NamedTuple):
    """A body's name, mass [kg], centre [m] and inertia about it [kg m^2], in its frame."""

    body: str
    mass: float
    centre: Array
    inertia: Array


@checked_methods
@dataclass(frozen=True)
class ControllerPayload:
    """A load in the format of one robot maker's controller."""

    maker: str  #: ``"franka"``, ``"ur"``, ``"kuka"``, ``"kinova"`` or ``"ros2"``.
    text: str  #: To paste: a call, a line of KRL or a link of a URDF.
    #: The same numbers under the maker's names, in the maker's units, frame and order.
    values: MappingProxyType[str, Any]
    #: What the maker's model leaves out, and limits of its interface that the load exceeds.
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([self.text, *self.notes])


def require_maker(maker: str) -> None:
    """Refuse a maker whose conventions are not known."""
    if maker not in CONVENTIONS:
        raise InputError(
            f"no robot maker {maker!r}; there are {', '.join(CONVENTIONS)}"
            f"{did_you_mean(maker, CONVENTIONS)}"
        )


Convention = tuple[str, dict[str, Any], tuple[str, ...]]


def _franka_payload(load: Load) -> Convention:
    # Matrices of libfranka are column-major.
    inertia = load.inertia.flatten(order="F")
    values = {"mass": load.mass, "center_of_mass": load.centre.tolist()}
    text = (
        f"robot.setLoad({_format_number(load.mass)}, {{{_format_numbers(load.centre)}}}, "
        f"{{{_format_numbers(inertia)}}});"
    )
    note = (
        f"The load of {load.mass:.3g} kg exceeds the {FRANKA_RATED_PAYLOAD:g} kg that a Panda or "
        "Research 3 may carry."
    )
    heavy = (note,) if load.mass > FRANKA_RATED_PAYLOAD else ()
    return text, values | {"load_inertia": inertia.tolist()}, heavy


def _ur_payload(load: Load) -> Convention:
    i = load.inertia
    inertia = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    if np.abs(inertia).max() > UR_LARGEST_INERTIA:
        raise InputError(
            f"set_target_payload takes inertias up to {UR_LARGEST_INERTIA:g} kg m^2; the largest "
            f"of this load is {np.abs(inertia).max():.4g}"
        )
    values = {"m": load.mass, "cog": load.centre.tolist(), "inertia": [float(x) for x in inertia]}
    text = (
        f"set_target_payload({_format_number(load.mass)}, [{_format_numbers(load.centre)}], "
        f"[{_format_numbers(np.array(inertia))}])"
    )
    return text, values, ("The rated payload depends on the model of the robot: see its manual.",)


def _kuka_payload(load: Load) -> Convention:
    # Principal moments and right-handed axes, in the order of the nearest axes of the flange.
    moments, axes = np.linalg.eigh(load.inertia)
    nearest = max(permutations(range(3)), key=lambda o: np.abs(np.diag(axes[:, o])).sum())
    moments, axes = moments[list(nearest)], axes[:, list(nearest)]
    axes = axes * np.where(np.diag(axes) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    # KUKA's A, B, C: about Z, then the new Y, then the new X [deg].
    turns = Rotation.from_matrix(axes).as_euler("ZYX", degrees=True)
    numbers = [*(1e3 * load.centre).tolist(), *turns.tolist()]
    centre = dict(zip("XYZABC", numbers, strict=True))
    inertia = dict(zip("XYZ", moments.tolist(), strict=True))
    fields = f"CM {{{_format_fields(centre)}}}, J {{{_format_fields(inertia)}}}"
    text = f"{{M {_format_number(load.mass)}, {fields}}}"
    note = "The rated load and its diagram depend on the model of the robot: see KUKA.Load."
    return text, {"M": load.mass, "CM": centre, "J": inertia}, (note,)


def _kinova_payload(load: Load) -> Convention:
    centre = dict(zip("xyz", load.centre.tolist(), strict=True))
    values = {"payload_mass": load.mass, "payload_mass_center": centre}
    note = "Kinova's controller takes no inertia of a load: its gravity is compensated only."
    return json.dumps(values), values, (note,)


def _ros2_payload(load: Load) -> Convention:
    i = load.inertia
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    terms = dict(zip(names, i[np.triu_indices(3)].tolist(), strict=True))
    values = {"parent": load.body, "mass": load.mass, "xyz": load.centre.tolist(), **terms}
    inertia = " ".join(f'{k}="{_format_number(v)}"' for k, v in terms.items())
    text = (
        '<link name="payload">\n'
        "  <inertial>\n"
        f'    <origin xyz="{_format_numbers(load.centre, " ")}" rpy="0 0 0"/>\n'
        f'    <mass value="{_format_number(load.mass)}"/>\n'
        f"    <inertia {inertia}/>\n"
        "  </inertial>\n"
        "</link>\n"
        '<joint name="payload_joint" type="fixed">\n'
        f"  <parent link={quote_attribute(load.body)}/>\n"
        '  <child link="payload"/>\n'
        "</joint>"
    )
    return text, values, ()


CONVENTIONS: dict[str, Callable[[Load], Convention]] = {
    "franka": _franka_payload,
    "ur": _ur_payload,
    "kuka": _kuka_payload,
    "kinova": _kinova_payload,
    "ros2": _ros2_payload,
}


def _format_fields(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {_format_number(value)}" for name, value in values.items())


def _format_number(value: float) -> str:
    """Twelve digits, more than any controller uses."""
    return f"{value:.12g}"


def _format_numbers(values: Array, between: str = ", ") -> str:
    return between.join(_format_number(float(x)) for x in values)
