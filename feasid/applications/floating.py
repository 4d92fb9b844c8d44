"""Floating bases: the motion of a base from its sensors, contacts, and logs with both."""

from feasid.logs.floating import ContactSensor, Imu
from feasid.robot.dynamics.floating import (
    Contact,
    contact_free_projector,
    contact_torques,
    floating_motion,
    imu_motion,
    rotation_matrices,
)

__all__ = [
    "Contact",
    "ContactSensor",
    "Imu",
    "contact_free_projector",
    "contact_torques",
    "floating_motion",
    "imu_motion",
    "rotation_matrices",
]
