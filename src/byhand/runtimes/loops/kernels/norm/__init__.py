"""Kernels of normalisation."""
