"""A time budget becomes a run: its shape, recipe, number of steps, and expected loss.

    recipe       the ladder of shapes and everything else of a run, as functions of the shape
    expectation  the validation loss that a shape reaches on Shakespeare, and its equivalent on another text
    n_grams      the loss of n-gram counts on a text: how hard it is
    probe        times real steps of a shape
    choice       the shape and the steps with the lowest expected loss that fit the time

Only `probe` looks at the machine; the rest are functions of numbers.
"""
