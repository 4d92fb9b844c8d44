"""What the robot is: bodies, joints, their parameters, and the files that describe them."""
