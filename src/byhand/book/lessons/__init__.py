"""Lessons: worked examples as numbered steps."""
