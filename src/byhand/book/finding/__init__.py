"""Finding: the index of equations and places, and the search in it."""
