"""Serving: a model behind OpenAI's endpoints, for other programs; the extra `serve` has what it needs."""
