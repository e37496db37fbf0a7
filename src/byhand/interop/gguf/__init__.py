"""GGUF, the files of llama.cpp and its relatives: metadata, tokens and tensors, perhaps quantised, in one file."""
