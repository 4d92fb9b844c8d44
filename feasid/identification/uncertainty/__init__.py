"""The uncertainty of a fit: ranges with proofs and the posterior density; reads no log."""
