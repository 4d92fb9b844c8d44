"""From regression equations to feasible parameters; what solves equations is here alone."""
