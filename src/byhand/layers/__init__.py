"""The layers, one file each: which parameters a layer has, and which equations it applies to them.

A layer reads its sizes from the config. `parameters()` declares name, shape, initialisation and decay of its
parameters; `apply(p, ...)` takes their tensors under the same names. Choices between layers are a table in the
layer's file.
"""
