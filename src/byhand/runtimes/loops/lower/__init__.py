"""From a graph to a program: groups by the rules, and their calls."""
