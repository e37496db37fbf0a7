"""Rules: which applications of a graph become one group of calls."""
