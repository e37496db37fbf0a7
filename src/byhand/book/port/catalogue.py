"""The catalogue of mistakes in programs: each is one substitution in an equation's half, or in the wiring.

Those of an equation stand with its typical mistakes in `entries/`, so that quiz, worksheets and ports share their
words; those of the wiring stand here. `docs/build/port.py` plants each in the model of the page and writes down the
numbers that it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from byhand.book.entries.contract import ENTRIES
from byhand.book.words.language import Words
from byhand.engine.equation import Composite, registry


@dataclass(frozen=True)
class Planted(Words):
    """A mistake in words, and as code.

    where  the function: "layer_norm.vjp", the half of an equation, or "module:qualified name"
    old    a text that stands there once or more
    new    the wrong text in its place
    """

    where: str
    old: str
    new: str


def catalogue() -> tuple[Planted, ...]:
    """Return every mistake: those of the equations, in the order of the entries, then those of the wiring."""
    return (*_of_equations(), *(Planted(*row) for row in WIRING))


def _of_equations() -> Iterator[Planted]:
    for stem, entry in ENTRIES.items():
        forward = "compose" if isinstance(registry[stem], Composite) else "forward"
        for half, slips in ((forward, entry.mistakes), ("vjp", entry.gradient_mistakes)):
            for en, zh, _, *code in slips:
                if code:
                    yield Planted(en, zh, f"{stem}.{half}", *code)


_MODEL, _RUN = "byhand.model:TinyGPT.forward", "byhand.book.port.model:numbers"
_RATE = "byhand.book.port.model:rate"
_FILLED, _BLOCK = "byhand.book.port.model:filled", "byhand.layers.block:Block.apply"
_MID, _OUT = 'residual(x, a, name="x_mid")', 'residual(x, self.mlp.apply(p["mlp"], h), name="x_out")'
_ONE = 'h = self.norm.apply(p["ln_1"], x, "ln_1")'
_TWO = 'h = self.norm.apply(p["ln_2"], x, "ln_2")'
_NORM = "float(gradient_norm(gradients))"
_STEP = "optimizer.step(model.parameters())"


def _unmoved(name: str) -> str:
    return f'optimizer.step({{n: p for n, p in model.parameters().items() if "{name}" not in n}})'


WIRING = (
    # The generator and the batch.
    ("left out the 1 that is added to gains", "增益忘了加 1", _FILLED, "drawn = drawn + 1", "pass"),
    (
        "filled matrices as [out, in], column by column",
        "按 [out, in]（逐列）填充了矩阵",
        _FILLED,
        "drawn.reshape(shape)",
        "drawn.reshape(shape[::-1]).T",
    ),
    (
        "let the generator start from 1, not from 7",
        "生成器从 1 而不是从 7 开始",
        "byhand.book.port.model:states",
        "x = FIRST",
        "x = 1",
    ),
    (
        "used x itself as the first number, before a step",
        "把 x 本身当作第一个数，没有先走一步",
        "byhand.book.port.model:states",
        "x = (1664525 * x + 1013904223) % 2**32\n        yield x",
        "yield x\n        x = (1664525 * x + 1013904223) % 2**32",
    ),
    ("did not shift the targets", "目标没有错开一位", _FILLED, "rows[:, 1:]", "rows[:, :-1]"),
    (
        "shifted the targets the other way",
        "目标往反方向错开了",
        _FILLED,
        "rows[:, :-1], rows[:, 1:]",
        "rows[:, 1:], rows[:, :-1]",
    ),
    (
        "read tokens column by column, as (T + 1, B)",
        "按 (T + 1, B) 逐列读取了词元",
        _FILLED,
        "reshape(BATCH, config.seq_len + 1)",
        "reshape(config.seq_len + 1, BATCH).T",
    ),
    (
        "left out the last position of each text",
        "漏了每段文本的最后一个位置",
        _FILLED,
        "rows[:, :-1], rows[:, 1:]",
        "rows[:, :-2], rows[:, 1:-1]",
    ),
    (
        "left out the token that begins a document",
        "文档开头漏了起始标记",
        _FILLED,
        "np.asarray([DOCUMENT])",
        "np.asarray([DOCUMENT[1:]])",
    ),
    (
        "gave the token that begins a document number 0, and the letters those behind",
        "把起始标记编成 0 号，字母从 1 号开始",
        _FILLED,
        "np.asarray([DOCUMENT])",
        "(np.asarray([DOCUMENT]) + 1) % config.vocab_size",
    ),
    (
        "drew the head behind the blocks",
        "输出层的权重排到了各块之后才取",
        "byhand.book.port.microgpt:in_order",
        "    return shapes",
        '    shapes["lm_head"] = shapes.pop("lm_head")\n    return shapes',
    ),
    # The model.
    ("used the first block's weights in every block", "每个块都用了第一个块的权重", _MODEL, "[str(i)]", '["0"]'),
    (
        "went through the blocks from the last to the first",
        "从最后一个块倒着走到了第一个",
        _MODEL,
        "[str(i)]",
        "[str(len(layers.blocks) - 1 - i)]",
    ),
    (
        "left out the last block",
        "漏了最后一个块",
        _MODEL,
        "enumerate(layers.blocks)",
        "enumerate(layers.blocks[:-1])",
    ),
    (
        "left out the norm behind the embeddings",
        "漏了嵌入之后的归一化",
        "byhand.model:Layers.begin",
        "if self.first else",
        "if False else",
    ),
    (
        "normalised the stream once more before the head",
        "输出层之前多做了一次归一化",
        "byhand.model:Layers.finish",
        "return self.head",
        'x = registry["rms_norm"](x, eps=self.config.norm_eps)\n        return self.head',
    ),
    ("left out the final norm", "漏了最后的归一化", "byhand.model:Layers.finish", "if self.norm:", "if False:"),
    (
        "tied the head to the token table",
        "输出层与词元表共用了权重",
        "byhand.layers.head:LMHead.apply",
        'else p["w"]',
        "else transpose(table)",
    ),
    ("forgot the head's bias", "忘了加输出层的偏置", "byhand.layers.head:LMHead.apply", '*given(p, "b"), ', ""),
    ("left out the norm before attention", "漏了注意力之前的归一化", _BLOCK, _ONE, "h = x"),
    ("left out the norm before the MLP", "漏了 MLP 之前的归一化", _BLOCK, _TWO, "h = x"),
    (
        "used the first norm's gain and bias for both",
        "两个归一化都用了第一个的增益与偏置",
        _BLOCK,
        'p["ln_2"], x, "ln_2"',
        'p["ln_1"], x, "ln_2"',
    ),
    (
        "let the MLP read the stream from before attention",
        "MLP 读到的是注意力之前的残差流",
        _BLOCK,
        f"x = {_MID}\n            {_TWO}",
        f'h = self.norm.apply(p["ln_2"], x, "ln_2")\n            x = {_MID}',
    ),
    (
        "added attention's output to the normalised stream",
        "把注意力的输出加到了归一化之后的流上",
        _BLOCK,
        _MID,
        "residual(h, a)",
    ),
    (
        "added the MLP's output to the normalised stream",
        "把 MLP 的输出加到了归一化之后的流上",
        _BLOCK,
        _OUT,
        'residual(h, self.mlp.apply(p["mlp"], h))',
    ),
    (
        "added the MLP's output to the block's input: attention's is lost",
        "把 MLP 的输出加到了块的输入上：丢了注意力的输出",
        _BLOCK,
        f"x = {_MID}\n            {_TWO}",
        f'h = self.norm.apply(p["ln_2"], {_MID}, "ln_2")',
    ),
    (
        "left out the activation",
        "漏了激活函数",
        "byhand.layers.mlp:MLP.apply",
        'hidden = activation(pre, name="act")',
        "hidden = pre",
    ),
    # The way back.
    (
        "recorded no edge to attention's output",
        "没有记录通往注意力输出的边",
        _BLOCK,
        _MID,
        "residual(x, type(a)(a.data))",
    ),
    (
        "recorded no edge along the stream past attention",
        "没有记录残差流绕过注意力的边",
        _BLOCK,
        _MID,
        "residual(type(x)(x.data), a)",
    ),
    (
        "recorded no edge into the final norm",
        "没有记录通往最后归一化的边",
        "byhand.model:Layers.finish",
        'p["ln_f"], x,',
        'p["ln_f"], type(x)(x.data),',
    ),
    (
        "overwrote a gradient where two ways meet, instead of adding",
        "两路梯度汇合处做了覆盖，而不是相加",
        "byhand.engine.backward:walk_back",
        "cotangents[key] + d if key in cotangents else d",
        "d",
    ),
    (
        "did not clear the gradients before the second step",
        "第二步之前没有清空梯度",
        _RUN,
        "model.zero_grad()",
        "pass",
    ),
    ("took the norm without its root", "范数忘了开方", _RUN, _NORM, f"{_NORM} ** 2"),
    (
        "added the norms of the parameters instead of their squares",
        "把各参数的范数直接相加，而不是平方后相加",
        _RUN,
        _NORM,
        "sum(float((g**2).sum()) ** 0.5 for g in gradients.values())",
    ),
    # The update.
    (
        "decayed every parameter, not the matrices alone",
        "衰减了所有参数，而不只是矩阵",
        _RUN,
        "AdamW(**step)",
        'AdamW(**step | {"decay": "all"})',
    ),
    (
        "clipped the gradients to norm 1",
        "把梯度裁剪到了范数 1",
        _RUN,
        _STEP,
        "optimizer.clipped_step(model.parameters(), 1)",
    ),
    (
        "clipped each parameter's gradient to norm 1 by itself",
        "把每个参数的梯度各自裁剪到了范数 1",
        _RUN,
        _STEP,
        "for p in model.parameters().values():\n"
        "                p.grad = p.grad / max(1, float((p.grad**2).sum()) ** 0.5)\n"
        f"            {_STEP}",
    ),
    (
        "kept the learning rate of the first step",
        "学习率一直是第一步的值，没有下降",
        _RATE,
        "(1 - t / (UPDATES + 1))",
        "1",
    ),
    (
        "let the learning rate fall one step early",
        "学习率的下降早了一步",
        _RATE,
        "(1 - t / (UPDATES + 1))",
        "(1 - (t + 1) / (UPDATES + 1))",
    ),
    ("never moved the token table", "词元表从不更新", _RUN, _STEP, _unmoved("wte")),
    ("never moved the positions", "位置表从不更新", _RUN, _STEP, _unmoved("wpe")),
    ("never moved the head", "输出层从不更新", _RUN, _STEP, _unmoved("lm_head")),
    ("never moved the head's bias", "输出层的偏置从不更新", _RUN, _STEP, _unmoved("lm_head.b")),
    ("never moved the norms' gains and biases", "各归一化的增益与偏置从不更新", _RUN, _STEP, _unmoved("ln_")),
    ("never moved the final norm", "最后的归一化从不更新", _RUN, _STEP, _unmoved("ln_f")),
    ("never moved the first block", "第一个块从不更新", _RUN, _STEP, _unmoved("blocks.0")),
    ("never moved the last block", "最后一个块从不更新", _RUN, _STEP, _unmoved("blocks.1")),
    (
        "kept no moments from step to step",
        "两步之间没有保留矩",
        _RUN,
        _STEP,
        f"optimizer.moments = {{k: {{}} for k in optimizer.moments}}\n            {_STEP}",
    ),
)
