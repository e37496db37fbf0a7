"""Runtimes: ways to run the equations. `numpy` is the reference that the others are held against."""
