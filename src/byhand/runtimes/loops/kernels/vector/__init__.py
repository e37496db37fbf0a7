"""Inner routines that kernels share."""
