"""Lessons as graphs that a page can work again: arrays, and the arithmetic of each of their numbers as data."""
