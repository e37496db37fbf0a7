"""Number formats: how many bits a number takes, in memory and in files; packing, unpacking, and what that loses."""
