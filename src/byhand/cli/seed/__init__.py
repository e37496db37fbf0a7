"""The seed program's command line."""
