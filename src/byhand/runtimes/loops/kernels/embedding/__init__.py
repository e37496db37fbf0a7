"""Kernels of the embeddings."""
