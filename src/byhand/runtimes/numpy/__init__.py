"""The NumPy runtime evaluates equation by equation on the tape, which records the graph and walks back.

It supports every setting; the other runtimes are tested against it.
"""
