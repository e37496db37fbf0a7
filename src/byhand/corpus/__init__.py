"""The corpus: where a text comes from, and its batches."""
