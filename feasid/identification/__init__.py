"""From a log and a robot to values of its parameters, and to the evidence for them."""
