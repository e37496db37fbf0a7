"""Hostile inputs for every reader, made from a seed.

A module here with `attack(seed: int, folder: Path) -> None` is run by `dev.py fuzz` with ever new seeds, each in an
empty folder of its own. An attack raises if the code under attack does anything but accept a good input or refuse a
bad one in one line; it takes less than 20 seconds of a processor and 200 MB. The suite runs each with a few seeds.
"""
