"""Checkpoints of nanoGPT."""
