"""Tokenizers: text to token ids and back to bytes.

Each has `encode(text)`, `decode(ids)`, and `id in tokenizer`.
"""
