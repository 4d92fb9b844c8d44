"""Exact feasibility verdicts on the links of description files, with causes and corrections."""
