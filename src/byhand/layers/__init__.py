"""The layers, one file each: a layer's parameters, and the equations it applies to them.

A layer reads its sizes from the config. `parameters()` declares its parameters' names, shapes, initialisation and
decay; `apply(p, ...)` takes their tensors under the same names. Alternatives are a table in the layer's file.
"""
