"""byhand from Python: what the commands do, with their settings by name, on text as `str`."""
