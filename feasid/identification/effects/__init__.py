"""Effects that enter a fit besides rigid bodies: joint terms, sensor errors, preparations."""
