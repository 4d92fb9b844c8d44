"""Is this model possible? Exact verdicts on the links of a file, their causes and corrections."""
