"""Rules: patterns that group a graph's applications."""
