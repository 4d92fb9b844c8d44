"""Joints of a URDF file that follow others."""

from __future__ import annotations

from feasid.errors import did_you_mean
from feasid.exact.decimals import shown
from feasid.formats.urdf.read import Urdf, UrdfJoint
from feasid.robot.couplings import Coupling

SEVERAL = {"floating", "planar"}


def couplings(urdf: Urdf) -> tuple[tuple[Coupling, ...], list[str]]:
    """The file's ``<mimic>`` elements, and what could not be followed.

    A joint that mimics a fixed one is held at its offset. One that mimics a joint which does not
    exist moves by itself, as in other readers, and is noted.

    Raises
    ------
    DescriptionError
        Names a joint of several degrees of freedom that follows or leads.
    """
    out, notes = [], []
    for joint in urdf.joints.values():
        if joint.mimic is None:
            continue
        leader = urdf.joints.get(joint.mimic.joint)
        if leader is None:
            hint = did_you_mean(joint.mimic.joint, urdf.joints)
            notes.append(
                f"{urdf.text.path}:{joint.mimic.element.line}: joint {joint.name!r} mimics "
                f"{shown(joint.mimic.joint)}, which does not exist{hint}, and is taken to move by "
                "itself"
            )
            continue
        _check_one_dof(urdf, joint, leader)
        moves = joint.mimic.multiplier != 0 and leader.type != "fixed"
        factors = {leader.name: joint.mimic.multiplier} if moves else {}
        out.append(Coupling(joint.name, factors, joint.mimic.offset))
    return tuple(out), notes


def _check_one_dof(urdf: Urdf, joint: UrdfJoint, leader: UrdfJoint) -> None:
    if {joint.type, leader.type} & SEVERAL and joint.mimic is not None:
        urdf.text.fail(
            f"joint {joint.name!r}: <mimic> {joint.type} joints do not follow {leader.type} ones",
            joint.mimic.element,
            "joint",
            joint=joint.name,
        )
