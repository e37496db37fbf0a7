"""Commands to learn by."""
