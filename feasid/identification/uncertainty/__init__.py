"""The uncertainty of a fit: confidence ranges with proofs and the posterior density.

Works on the estimate and its equations; reads no log.
"""
