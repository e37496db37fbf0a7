"""Conversations: messages, the text that a model's template makes of them, and its tokens."""
