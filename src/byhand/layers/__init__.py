"""The layers, one file each: which parameters a layer has, and which equations it applies to them.

A layer is a frozen record made from the config by `of`. `parameters()` names its parameters and says how they begin
and whether they decay; `apply(p, ...)` takes their tensors under the same names. Where the config chooses between
layers, the layer's file holds the choices in one table.
"""
