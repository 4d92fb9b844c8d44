"""How well a model predicts data that it was not fitted to, and for what it can be used.

Measures errors and derives verdicts; never changes a model.
"""
