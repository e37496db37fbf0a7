"""Kernels of linear layers with what follows them in the same pass."""
