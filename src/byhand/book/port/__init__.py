"""Port a GPT: a small model that a formula fills, its numbers, and the mistakes that other numbers stand for."""
