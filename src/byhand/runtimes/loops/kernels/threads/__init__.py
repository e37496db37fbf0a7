"""Kernels by which threads meet."""
