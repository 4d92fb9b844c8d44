"""Before NumPy is loaded: one BLAS thread, as on the command line."""

from hypothesis import HealthCheck, settings

from feasid.core.threads import limit_before_numpy

limit_before_numpy()


settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")  # how long an example takes is no property of the code
