"""Tracing: the values, gradients and applications of one pass, with their names."""
