"""Rigid loads attached to a robot: payloads, force sensors and torque constants.

A load of known or unknown inertia is identified with a robot that is already known.
"""
