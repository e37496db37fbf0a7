"""Machine code: intrinsics, the compiling processes, the cache, BLAS."""
