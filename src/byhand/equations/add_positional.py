r"""Positional embedding: add each position's vector to the vector of the token at that position.

Equation    X[b,t,:] = E[b,t,:] + W[start + t, :]
Derivative  d_E = d_X;  d_W[p, :] = sum of d_X[b,t,:] over all (b,t) with start + t = p, zero for unused positions
Shapes      e (..., T, C), table (T_max, C), start () or, for each stream, (B,) of integers, or absent: 0
            -> (..., T, C); start + T <= T_max
Raises      ShapeError if the widths differ or the positions run past the table
Source      Radford et al. 2018, Improving Language Understanding by Generative Pre-Training
"""

from byhand.engine.arrays import as_rows, namespace, positions, require, scatter_add_rows, start_of, sum_to_shape
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import cotangent_sum, element, indices, total


def forward(e, table, start=None):
    """Add row start + t of the table at position t; start is the number of positions already in a KV cache.

    start + T must not exceed the table: the model checks that, since no branch here may depend on a value.
    """
    t, t_max = e.shape[-2], table.shape[0]
    require(e.shape[-1] == table.shape[1], f"add_positional: widths of {e.shape} and {table.shape} differ")
    require(t <= t_max, f"add_positional: {t} positions, but the table has {t_max}")
    if start is None:
        return e + table[:t, :], (table,)
    rows = positions(start, e)
    return e + table[rows], (table, rows)


def vjp(saved, d_x):
    """Pass the cotangent on, and sum it over the batch into the used rows."""
    table, *rows = saved
    xp = namespace(d_x)
    if rows:
        used = sum_to_shape(d_x, (*rows[0].shape, d_x.shape[-1]))
        return d_x, scatter_add_rows(table.shape[0], rows[0].reshape((-1,)), as_rows(used)), None
    used = sum_to_shape(d_x, d_x.shape[-2:])
    unused = xp.zeros((table.shape[0] - used.shape[0], used.shape[1]), dtype=used.dtype)
    return d_x, xp.concat([used, unused], axis=0)


def terms(index, inputs, result):
    """The token's element plus the position's."""
    *_, t, c = index
    start = start_of(inputs, 2, index)
    return total([element(inputs, 0, index, "E"), element(inputs, 1, (start + t, c), "W")])


def gradient_terms(saved, d_results, slot, index):
    """The cotangent itself; for a position, the sum over the batch."""
    if slot == 0:
        return cotangent_sum([element(d_results, 0, index, "∂X")])
    (row, c), (*batch, n, _) = index, d_results[0].shape
    starts = [int(rows.reshape((-1, n))[at, 0]) for rows in saved[1:] for at in range(rows.size // n)] or [0]
    steps = ((at, row - starts[at[0] if len(starts) > 1 else 0]) for at in indices(batch))
    return cotangent_sum(element(d_results, 0, (*at, t, c), "∂X") for at, t in steps if 0 <= t < n)


flops = per_element(1, 1)  # one addition; backward the sum over the batch

add_positional = Equation.of(
    __name__,
    title="Positional embedding",
    latex=r"X_{b,t,:} = E_{b,t,:} + W_{pe}[\mathrm{start} + t,:]",
    derivative=r"\partial E = \partial X, \quad \partial W_{pe}[\mathrm{start} + t,:] = \sum_b \partial X_{b,t,:}",
    inputs=(
        Symbol("e", "E", "(..., T, C)", "token vectors"),
        Symbol("table", r"W_{pe}", "(T_max, C)", "one row for each position"),
        Symbol("start", r"\mathrm{start}", "() or (B,)", "number of positions before the first one; 0 if not given"),
    ),
    result=Symbol("x", "X", "(..., T, C)", "token vectors plus position vectors"),
    seed_names=("model::TinyGPT::add_positional",),
)
