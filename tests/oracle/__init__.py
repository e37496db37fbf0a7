"""PyTorch as an independent witness: these tests are marked `oracle` and skipped where torch is not installed."""
