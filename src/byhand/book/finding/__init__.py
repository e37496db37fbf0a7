"""Finding: the index of equations, places and other answers, and the search in it."""
