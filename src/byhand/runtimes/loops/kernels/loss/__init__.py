"""Kernels of the loss."""
