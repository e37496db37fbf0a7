"""Commands that bring models in and out."""
