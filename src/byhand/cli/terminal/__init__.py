"""The terminal: messages, untrusted text, progress, pictures, interrupts, the guard."""
