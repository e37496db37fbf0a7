"""Kernels of matrix products: register tiles, or a BLAS."""
