"""Benchmarks: ours and its peers on the same shape, alternating in one run, so that a busy machine slows all."""
