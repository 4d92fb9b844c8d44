"""Control with a dynamic model."""
