"""How the robot moves: kinematics and the regressor of its inverse dynamics."""
