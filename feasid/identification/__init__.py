"""The main pipeline, `fit`, and its result, `Fit`.

Calls the other packages in order; what another package can compute is not computed here.
"""
