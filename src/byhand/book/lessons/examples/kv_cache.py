"""Three tokens decoded one by one with a KV cache, and all at once without: fewer rows, the same logits."""

from dataclasses import replace

import numpy as np

from byhand.book.finding.source import pointer
from byhand.book.lessons.examples.paper_gpt import CONFIG, TEXT, WEIGHTS, model_of
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.lessons.lesson import Content, Maker, Number, Step, difference, grid, listed
from byhand.book.lessons.naming import short
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
from byhand.layers.cache import KVCache
from byhand.model import TinyGPT
from byhand.tracing.trace import Trace

ALONE = Words("On each token alone", "对每个词元单独计算")
FOLDED = Words("paper-gpt works out these equations", "这些公式的演算见 paper-gpt")
SHOWN = ("attn.qkv", "attn.scores", "attn.weights", "attn.mixed", "logits")


@listed(100, "Three tokens with and without a KV cache", "三个词元：有与没有键值缓存")
def lesson(array: Maker) -> Content:
    """Decode with the cache, show each token's computation, and compare the logits with those of the whole pass."""
    model = model_of(CONFIG, {n: array(w) for n, w in WEIGHTS.items()})
    tokens = list(TEXT[:-1])

    with scope("all"):
        whole = Trace.of(lambda: model.forward_logits(np.asarray([tokens])))
    cache = model.cache()
    steps = _folded(whole)
    rows = []
    for t, token in enumerate(tokens):
        with scope(f"token{t}"):
            trace, cache = decoded(model, token, cache)
        rows.append(trace.result.data[0, 0])
        steps += _folded(trace)
    steps += [_counted(len(tokens)), _compared(np.stack(rows), whole.result.data[0])]
    intro = Words(
        "Keys and values of earlier tokens are kept. A new token computes only its own row of Q, K and V; row t "
        "of the scores needs q of token t and the keys up to t, none of which a later token can change. That is "
        "why the results with and without a cache agree. First all three tokens at once, without a cache; then "
        "one by one, with it: before each token the cache gets one more place, of zeros. The steps in which "
        "tokens meet, and the logits, have their arithmetic here. Embeddings, LayerNorms, the projection and the "
        "MLP work on each token alone: of these only the results are given (paper-gpt works out the same "
        "equations).",
        "先前词元的键与值被保存下来。新词元只计算自己那一行的 Q、K、V；分数的第 t 行只需要词元 t 的查询与直到 t 的键，后面的词元不会改变它们，所以两种做法结果相同。"
        "先不用缓存，三个词元一次算完；再用缓存逐个计算，每个词元之前缓存先增加一个全零的位置。"
        "词元之间有联系的几步与 logits 给出全部算式；嵌入、层归一化、输出投影与前馈网络对每个词元单独计算，这里只给出结果（同样的公式在 paper-gpt 中有演算）。",
    )
    first = cache_of(model.cache(), 1).blocks[0]
    start = (
        ("tokens", str(tokens)),
        *((short(n), grid(p.data)) for n, p in model.parameters().items()),
        *((kept.name, grid(kept.data)) for kept in first),
    )
    return intro, steps, start


def cache_of(cache: KVCache, places: int) -> KVCache:
    """Return a cache of one block with so many places, whose arrays have names."""
    ((keys, values),) = cache.grown_to(places).blocks
    return KVCache(((Tensor(keys.data, name="cache.keys"), Tensor(values.data, name="cache.values")),), cache.length)


def decoded(model: TinyGPT, token: int, cache: KVCache) -> tuple[Trace, KVCache]:
    """Return the pass of one more token, and the cache with it: one place longer."""
    after = []

    def compute() -> Tensor:
        logits, kept = model.decode([[token]], cache_of(cache, int(cache.length[0]) + 1))
        after.append(kept)
        return logits

    return Trace.of(compute), after[0]


def _folded(trace: Trace) -> list[Step]:
    """Return the steps of a pass; consecutive ones that work on each token alone become one that lists results."""
    steps: list[Step] = []
    for step in forward_steps(trace):
        if not step.numbers or step.arrays[0].name.endswith(SHOWN):
            steps.append(step)
        elif steps and steps[-1].title is ALONE:
            steps[-1] = replace(steps[-1], results=steps[-1].results + step.results)
        else:
            steps.append(Step(ALONE, FOLDED, "", results=step.results))
    return steps


def _counted(n: int) -> Step:
    without = n * (n + 1) // 2
    numbers = (
        Number(
            Words("rows without a cache", "没有缓存时的行数"),
            " + ".join(str(t + 1) for t in range(n)),
            without,
            mistakes=(Mistake("counted the last pass only", "只数了最后一遍", n),),
        ),
        Number(
            Words("rows with the cache", "有缓存时的行数"),
            " + ".join("1" for _ in range(n)),
            n,
            mistakes=(Mistake("recomputed the earlier rows", "把先前的行又算了一遍", without),),
        ),
    )
    return Step(
        Words("Rows of Q, K and V that are computed", "计算了多少行 Q、K、V"),
        Words(
            "without: the whole context for each new token; with: one row for each",
            "没有缓存：每个新词元都重算整个上下文；有缓存：每个词元只算一行",
        ),
        pointer("layers/cache.py:KVCache"),
        numbers,
        goal=Words(
            "Count the work that the cache saves.",
            "数一数缓存省下多少计算。",
        ),
        why=Words(
            "Rows of earlier tokens do not change when a token is appended, so they need not be computed again.",
            "追加一个词元时，先前词元的各行不变，不必重算。",
        ),
    )


def _compared(cached: np.ndarray, whole: np.ndarray) -> Step:
    return Step(
        Words("The logits agree", "logits 相同"),
        Words("with the cache − without it", "有缓存的结果 − 没有缓存的结果"),
        pointer("layers/cache.py:KVCache"),
        tuple(difference(f"Δ logits[{t},{v}]", cached[t, v], whole[t, v]) for t, v in np.ndindex(*cached.shape)),
        goal=Words(
            "Check that the cache changes no result.",
            "验证缓存不改变任何结果。",
        ),
        why=Words(
            "Both computed the same sums from the same rows; only at different times.",
            "两种做法用同样的行算同样的和，只是时间不同。",
        ),
    )
