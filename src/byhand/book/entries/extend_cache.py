"""A cache of three places for two streams: one has one position so far, the other three, so its oldest leaves."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked
from byhand.book.words.language import Note, Words
from byhand.engine.terms import Term, element, total


def remark(term, index):
    """Return the note that says where a row comes from."""
    slot, source = term.parts[0].source
    if slot == 0:
        return Note(
            f"place {index[2]} keeps its row: no new position lands there.",
            f"第 {index[2]} 个位置保留原来的行：没有新位置落在这里。",
            "kept",
            {"place": index[2]},
        )
    return Note(
        f"row {source[2]} of the new ones lands in place {index[2]}.",
        f"第 {source[2]} 个新行放进第 {index[2]} 个位置。",
        "extended",
        {"row": source[2], "place": index[2]},
    )


def why_zero(inputs, slot, index, **static):
    """Explain the zero gradient of a row that was replaced."""
    return Words(
        "zero: a newer position took this place, so the row is not read.",
        "为零：更新的位置占用了这里，所以这一行没有被读取。",
    )


def _from_the_first(term: Term, at: Asked) -> Term:
    b, h, s, d = at.index
    x = at.inputs[1]
    return total(
        [element(at.inputs, 1, (b, h, s, d), "x") if s < x.shape[2] else element(at.inputs, 0, at.index, "kept")]
    )


entry = Entry(
    stem="extend_cache",
    title_zh="扩展键值缓存",
    meanings_zh={
        "kept": "先前位置的键或值；位置 p 存放在第 p mod S 处",
        "x": "新位置的键或值",
        "start": "每条文本在第一个新位置之前已有的位置数",
    },
    result_zh="保留下来的所有位置的键或值",
    inputs={
        "kept": [[[[1, 2], [0, 0], [0, 0]]], [[[3, 4], [5, 6], [7, 8]]]],
        "x": [[[[9, 1]]], [[[2, 9]]]],
        "start": [1, 3],
    },
    result=[[[[1, 2], [9, 1], [0, 0]]], [[[2, 9], [5, 6], [7, 8]]]],
    d_result=[[[[1, 0], [2, 5], [3, 3]]], [[[0, 1], [4, 3], [6, 2]]]],
    gradients={
        "kept": [[[[1, 0], [0, 0], [3, 3]]], [[[0, 0], [4, 3], [6, 2]]]],
        "x": [[[[2, 5]]], [[[0, 1]]]],
    },
    note="The second stream has three positions already, so position 3 takes place 3 mod 3 = 0.",
    note_zh="第二条文本已有三个位置，所以位置 3 放在 3 mod 3 = 0 处。",
    goal=Words(
        "Put the new keys and values among those of the earlier positions.",
        "把新的键与值放到先前位置的键与值之间。",
    ),
    why=Words(
        "Keys and values of earlier positions do not change, so they are kept instead of computed again. "
        "Each stream has its own length. "
        "Where the window slides, position p takes the place of position p − S, which no query sees any more.",
        "先前位置的键与值不会改变，所以保存下来，不必重算。每条文本有自己的长度。窗口滑动时，位置 p 占用位置 p − S 的地方，因为已没有查询能看到它。",
    ),
    why_back=Words(
        "Numbers only move: each row's derivative is that of its new place.",
        "这里只搬运数值：每一行的导数就是它现在所在位置的导数。",
    ),
    on_paper=(
        r"Y_s = \begin{cases} X_t & s = \mathrm{mod}(\mathrm{start} + t, S) \\ C_s & \text{otherwise} \end{cases}",
        r"\partial X_t = \partial Y_{\mathrm{mod}(\mathrm{start} + t, S)}",
    ),
    place=("attention", 4),
    torch=(
        "kept.scatter(2, ((start[:, None] + torch.arange(x.shape[2])) % kept.shape[2])[:, None, :, "
        "None].expand_as(x), x)"
    ),
    asked=(
        "DynamicCache, StaticCache, RollingBuffer, rolling buffer cache, "
        "kv cache update, cache_k, cache_v, index_copy_, append to the cache, ring buffer, "
        "滚动缓存, 追加到缓存, 更新缓存"
    ),
    notations=(
        r"K = [K_{past}; k]",
        "k = torch.cat((past_k, k), dim=-2)",
        "cache_k[:, start_pos : start_pos + seqlen] = k",
    ),
    remark=remark,
    why_zero=why_zero,
    mistakes=(("counted places from 0 instead of from start", "从 0 数起，而不是从 start 数起", _from_the_first),),
)
