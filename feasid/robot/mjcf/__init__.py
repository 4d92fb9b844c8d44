"""MJCF in and out."""
