"""Scenes: what a picture shows, declared as elements, each with its size, its drawing and its words."""
