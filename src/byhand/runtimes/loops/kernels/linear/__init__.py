"""Kernels of linear layers, fused with what follows them."""
