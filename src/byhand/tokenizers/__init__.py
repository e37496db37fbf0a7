"""Tokenizers: text to token ids and back to bytes.

`tokenizer.py` defines the interface, `registry.py` lists the kinds; `byte.py` is the default.
"""
