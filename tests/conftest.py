"""Before NumPy is loaded: one BLAS thread, as on the command line."""

from feasid.threads import limit_before_numpy

limit_before_numpy()
