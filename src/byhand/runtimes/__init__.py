"""Runtimes: ways to run the equations. `numpy` is the reference against which the others are tested."""
