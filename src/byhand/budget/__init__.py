"""A time budget becomes a run: which shape, which recipe, how many steps, and what to expect of them.

    recipe       the ladder of shapes and everything else of a run, as functions of the shape
    expectation  the validation loss that a shape reaches on Shakespeare, and what that is worth on another text
    n_grams      what counting alone predicts of a text: how hard it is
    probe        real steps of a shape, timed here
    choice       the shape and the steps with the lowest expected loss that fit the time

Only `probe` looks at the machine; the rest are functions of numbers.
"""
