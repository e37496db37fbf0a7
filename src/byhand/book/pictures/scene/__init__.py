"""Scenes: what a picture shows, declared; one renderer each for SVG, for words, and for JSON."""
