"""What is wrong with a log: one module per hypothesis."""
