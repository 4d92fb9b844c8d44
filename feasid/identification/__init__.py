"""The main pipeline, `fit`, and its result, `Fit`.

Calls the other packages in order and computes nothing that they can compute.
"""
