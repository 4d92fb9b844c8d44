"""Proofs in rational arithmetic that parameters are feasible or infeasible."""
