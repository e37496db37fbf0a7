r"""Token embedding: each token id selects its row of a table.

Equation    E[b,t,:] = W[token[b,t], :]
Derivative  d_W[v,:] = sum of d_E[b,t,:] over all (b,t) with token[b,t] = v   (repeated tokens add up)
Shapes      table (V, C), tokens (...) of integers -> (..., C)
Units       a `scale` multiplies every element, and backward every cotangent
Raises      ShapeError if the table is not a matrix or the tokens are not integers
Source      Bengio et al. 2003, A Neural Probabilistic Language Model
"""

from math import prod

from byhand.engine.arrays import as_rows, namespace, require, scatter_add_rows
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, indices, number, product, total


def forward(table, tokens, *, scale=None):
    """Look up the rows. Ids must be in [0, V): the model checks that, since no branch here may depend on a value."""
    xp = namespace(table)
    require(table.ndim == 2, f"embedding: table must be (V, C), not {table.shape}")
    require(xp.isdtype(tokens.dtype, "integral"), f"embedding: tokens must be integers, not {tokens.dtype}")
    rows = table[tokens]
    return rows if scale is None else rows * scale, (table, tokens)


def vjp(saved, d_e, *, scale=None):
    """Scatter-add each cotangent to the row it came from."""
    table, tokens = saved
    d_e = d_e if scale is None else d_e * scale
    return scatter_add_rows(table.shape[0], tokens.reshape((-1,)), as_rows(d_e)), None


def terms(index, inputs, result, *, scale=None):
    """An element of the table, times the scale."""
    *place, c = index
    row = int(inputs[1][tuple(place)])
    x = element(inputs, 0, (row, c), "W")
    return total([x]) if scale is None else product((x, number(scale, "s")))


def gradient_terms(saved, d_results, slot, index, *, scale=None):
    """The cotangents at the token's occurrences, each times the scale."""
    (row, c), tokens = index, saved[1]
    found = (element(d_results, 0, (*at, c), "∂E") for at in indices(tokens.shape) if int(tokens[at]) == row)
    return cotangent_sum(found if scale is None else ((d, number(scale, "s")) for d in found))


def flops(table, tokens, *, scale=None):
    """A product for the scale; backward, each row is added to its token's."""
    count = prod(tokens) * table[1]
    return (0, count) if scale is None else (count, 2 * count)


embedding = Equation.of(
    __name__,
    title="Token embedding",
    latex=r"E_{b,t,:} = W_{te}[\mathrm{token}_{b,t},:]",
    derivative=r"\partial W_{te}[v,:] = \sum_{b,t:\,\mathrm{token}_{b,t}=v} \partial E_{b,t,:}",
    inputs=(
        Symbol("table", r"W_{te}", "(V, C)", "one row for each token of the vocabulary"),
        Symbol("tokens", r"\mathrm{token}", "(...)", "token ids in [0, V)"),
    ),
    result=Symbol("e", "E", "(..., C)", "one vector for each token"),
    seed_names=("nn::embedding",),
)
