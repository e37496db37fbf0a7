"""The tape, registered as `numpy`: record the graph with NumPy, walk back, apply AdamW, one equation at a time.

It computes everything; the other runtimes are tested against it.
"""
