"""What can exist: feasible sets, the convex problems over them, and certificates."""
