"""Effects that enter a fit besides rigid bodies: joint terms, sensor errors, preparations.

Effects are defined and selected here; the model itself is estimated in `estimation`.
"""
