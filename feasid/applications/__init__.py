"""Everything that is done with a robot, a log or a fit."""
