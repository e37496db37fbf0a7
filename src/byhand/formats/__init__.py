"""Number formats: bits in memory and in files, packing and unpacking, rounding error."""
