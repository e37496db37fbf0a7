"""The NumPy runtime: equation by equation on the tape, which records the graph and walks back.

It computes everything; the other runtimes are tested against it.
"""
