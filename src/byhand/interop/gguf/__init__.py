"""GGUF, the file format of llama.cpp and its relatives: metadata, tokens and tensors, perhaps quantised."""
