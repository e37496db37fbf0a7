"""The original program's command line."""
