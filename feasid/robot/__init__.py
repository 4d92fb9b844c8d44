"""Robots: bodies, joints, and their parameters."""
