"""Rigid loads attached to a robot that is known: payloads, force sensors, torque constants."""
