"""Graph to program: groups by the rules, and their calls."""
