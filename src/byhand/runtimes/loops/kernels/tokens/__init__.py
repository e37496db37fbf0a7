"""The kernels of byte-pair encoding: count a text's words, learn merges, encode words."""
