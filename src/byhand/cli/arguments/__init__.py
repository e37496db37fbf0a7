"""Flags, presets and settings files."""
