"""The tape, registered as `numpy`: record the graph with NumPy, walk back, apply AdamW, one equation at a time.

It computes everything and is what the other runtimes are held against.
"""
