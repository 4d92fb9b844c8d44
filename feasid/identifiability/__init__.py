"""What can be known: the parameter nullspace and the base parameters."""
