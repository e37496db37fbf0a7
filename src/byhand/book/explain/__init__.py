"""Explaining one number of a model: a value, a gradient, an update."""
