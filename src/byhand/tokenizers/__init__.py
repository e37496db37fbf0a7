"""Tokenizers: text to token ids and back to bytes.

`tokenizer.py` says what each can do, `registry.py` which there are; `byte.py` is the default, `bpe.py` the second.
"""
