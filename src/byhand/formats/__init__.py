"""Number formats: bits of a number in memory and in files, packing and unpacking, and the rounding error."""
