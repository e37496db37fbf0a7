"""Commands that import and export models."""
