"""The terminal: what is shown, progress, interrupts, the guard."""
