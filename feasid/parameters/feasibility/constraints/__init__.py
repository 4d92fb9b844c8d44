"""The feasible set: constraints as affine data, their units, and equalities substituted."""
