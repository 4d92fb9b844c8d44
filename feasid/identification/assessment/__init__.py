"""How well a model predicts what it was not fitted to, and its uses; changes no model."""
