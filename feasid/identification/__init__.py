"""The main job: from a log and a robot to a fit."""
