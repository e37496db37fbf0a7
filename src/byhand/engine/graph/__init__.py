"""The graph of a computation, recorded by shape only."""
