"""URDF in and out."""
