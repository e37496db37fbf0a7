"""The kernels of byte-pair encoding: a text's words counted, merges learnt, words encoded."""
