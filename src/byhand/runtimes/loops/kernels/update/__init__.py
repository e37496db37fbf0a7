"""The kernel of the update."""
