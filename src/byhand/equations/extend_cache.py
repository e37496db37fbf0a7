r"""Extending a KV cache: write the rows of new positions to their places among the kept rows.

Equation    y[b,h,s,d] = x[b,h,t,d] if s = (start_b + t) mod S, the last such t;  otherwise kept[b,h,s,d]
Derivative  d_x[b,h,t,d] = d_y[b,h,s,d], s = (start_b + t) mod S, 0 if a later row took the place;
            d_kept[b,h,s,d] = 0 if s = (start_b + t) mod S, otherwise d_y[b,h,s,d]
Shapes      kept (B, H, S, D), x (B, H, T, D), start (B,) of integers -> (B, H, S, D)
Raises      ShapeError if batches, heads or widths differ
Source      Pope et al. 2022, arXiv:2211.05102, section 3.3; the ring: Jiang et al. 2023, arXiv:2310.06825, section 2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, total


def forward(kept, x, start):
    """Gather the new row of each place. Each stream of the batch has its own start."""
    require(
        kept.ndim == x.ndim == 4 and (*kept.shape[:2], kept.shape[3]) == (*x.shape[:2], x.shape[3]),
        f"extend_cache: kept {kept.shape} and x {x.shape} differ in batch, heads or width",
    )
    require(start.shape == x.shape[:1], f"extend_cache: start {start.shape} is not one number for each of {x.shape}")
    xp, steps, places = namespace(x), x.shape[2], kept.shape[2]
    rows = row_in(start[:, None], xp.arange(places), steps, places)
    y = xp.where(rows[:, None, :, None] >= 0, _gathered(x, rows), kept)
    taken = xp.where(xp.arange(steps) < steps - places, -1, (start[:, None] + xp.arange(steps)) % places)
    return y, (rows, taken)


def row_in(start, place, steps, places):
    """Return the index of a place's new row; negative if the old row stays."""
    return steps - 1 - (start + steps - 1 - place) % places


def _gathered(rows, index):
    """Return row index[b,s] of each stream and head, row 0 for a negative index."""
    xp = namespace(rows)
    return xp.take_along_axis(rows, xp.where(index < 0, 0, index)[:, None, :, None], axis=2)


def vjp(saved, d_y):
    """Each row's cotangent is its place's; replaced rows get 0."""
    rows, taken = saved
    zero = namespace(d_y).zeros_like(d_y[:, :, :1])
    where = namespace(d_y).where
    d_kept = where(rows[:, None, :, None] >= 0, zero, d_y)
    return d_kept, where(taken[:, None, :, None] >= 0, _gathered(d_y, taken), zero), None


def terms(index, inputs, result):
    """One element: the new row's, or the kept one."""
    b, h, s, d = index
    kept, x, start = inputs
    row = int(row_in(int(start[b]), s, x.shape[2], kept.shape[2]))
    return total([element(inputs, 1, (b, h, row, d), "x") if row >= 0 else element(inputs, 0, index, "kept")])


extend_cache = Equation.of(
    __name__,
    title="Extending a KV cache",
    latex=r"Y_{b,h,s,:} = \begin{cases} X_{b,h,t,:} & s = \mathrm{mod}(\mathrm{start}_b + t, S) \\ "
    r"C_{b,h,s,:} & \text{otherwise} \end{cases}",
    derivative=r"\partial X_{b,h,t,:} = \partial Y_{b,h,\mathrm{mod}(\mathrm{start}_b + t, S),:}, \quad "
    r"\partial C_{b,h,s,:} = \begin{cases} 0 & s = \mathrm{mod}(\mathrm{start}_b + t, S) \\ "
    r"\partial Y_{b,h,s,:} & \text{otherwise} \end{cases}",
    inputs=(
        Symbol("kept", "C", "(B, H, S, D)", "keys or values of earlier positions; position p is at place p mod S"),
        Symbol("x", "X", "(B, H, T, D)", "keys or values of the new positions"),
        Symbol("start", r"\mathrm{start}", "(B,)", "number of positions before the first new one, for each stream"),
    ),
    result=Symbol("y", "Y", "(B, H, S, D)", "keys or values of all kept positions"),
    moves=True,
)
