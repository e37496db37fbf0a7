"""Generated tables that pair each line of a formula with the call that computes it, its place and its shape."""

from __future__ import annotations

import ast
from pathlib import Path

from byhand.book.finding import source
from byhand.book.pages.blocks.excerpts import located
from byhand.book.pages.blocks.markdown import block, inline, link, link_equation, table
from byhand.book.pictures.passes import pass_through
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine.equation import registry
from byhand.errors import ByhandError

# Formula, definition that holds the call, callee, number of the call among those, name of its result in a pass
Line = tuple[str, str, str, int, str]
EMBEDDINGS, BLOCK, MLP = "layers/embeddings.py", "layers/block.py:Block.apply", "layers/mlp.py:MLP.apply"
ATTENTION = "equations/causal_self_attention.py:compose"
LINES: dict[str, tuple[Line, ...]] = {
    "embeddings": (
        (r"E = W_{te}[\mathrm{tokens}]", f"{EMBEDDINGS}:TokenEmbedding.apply", "embedding", 0, "tok"),
        (r"X = E + W_{pe}[\mathrm{positions}]", f"{EMBEDDINGS}:PositionEmbedding.apply", "add_positional", 0, "x"),
    ),
    "block": (
        (r"H = \mathrm{LN}(X)", BLOCK, "self.norm.apply", 0, "blocks.0.ln_1"),
        (r"A = \mathrm{CausalSelfAttn}(H)", BLOCK, "self.attention.apply", 0, "blocks.0.attn.out"),
        (r"X \leftarrow X + A", BLOCK, "residual", 0, "blocks.0.x_mid"),
        (r"M = \mathrm{LN}(X)", BLOCK, "self.norm.apply", 1, "blocks.0.ln_2"),
        (r"O = \mathrm{MLP}(M)", BLOCK, "self.mlp.apply", 0, "blocks.0.mlp.out"),
        (r"X \leftarrow X + O", BLOCK, "residual", 1, "blocks.0.x_out"),
    ),
    "mlp": (
        (r"U = M W_{fc} + b_{fc}", MLP, "linear", 0, "blocks.0.mlp.pre"),
        (r"G = \mathrm{GELU}(U)", MLP, "activation", 0, "blocks.0.mlp.act"),
        (r"O = G W_{out} + b_{out}", MLP, "linear", 3, "blocks.0.mlp.out"),
    ),
    "head": (
        (r"X_n = \mathrm{LN}(X)", "model.py:Layers.finish", "self.norm.apply", 0, "ln_f"),
        (r"Z = X_n W_{lm} + b_{lm}", "layers/head.py:LMHead.apply", "linear", 0, "logits"),
    ),
    "project": (
        (r"[Q, K, V] = H W_{qkv} + b_{qkv}", ATTENTION, "linear", 0, "blocks.0.attn.qkv"),
        (r"Q, K, V", ATTENTION, "split_qkv", 0, "blocks.0.attn.q"),
    ),
    "score": ((r"S = \frac{Q K^{\top}}{\sqrt{D}}", ATTENTION, "attention_scores", 0, "blocks.0.attn.scores"),),
    "weigh": ((r"P = \mathrm{softmax}(S + M)", ATTENTION, "causal_softmax", 0, "blocks.0.attn.weights"),),
    "mix": (
        (r"Y = P V", ATTENTION, "mix", 0, "blocks.0.attn.mixed"),
        (r"[Y_0, \ldots, Y_{H-1}]", ATTENTION, "merge_heads", 0, "blocks.0.attn.merged"),
    ),
    "out": ((r"A = Y W_{proj} + b_{proj}", ATTENTION, "linear", 1, "blocks.0.attn.out"),),
    "loss": (
        (
            r"L = \frac{1}{N} \sum_n -\log p_{n,y_n}",
            "model.py:TinyGPT.loss_of",
            "cross_entropy",
            0,
            "loss",
        ),
    ),
}
APPLIED = {
    "self.norm.apply": "layer_norm", "self.attention.apply": "causal_self_attention", "activation": "gelu",
}  # fmt: skip
"""The equation that a layer's call applies in the default model."""
SESSION = "runtimes/tape/session.py:TapeSession.step"
LOOP: tuple[tuple[str, str, str, Words], ...] = (
    (
        r"y_t = x_{t+1}",
        "train.py:Trainer.batches",
        "self.train.sample_batch",
        Words("tokens and targets, each [B, T]", "输入与目标，各为 [B, T]"),
    ),
    (
        r"\alpha_t",
        "train.py:Trainer.update",
        "learning_rate",
        Words("the learning rate of this step", "这一步的学习率"),
    ),
    (
        r"\partial \theta \leftarrow 0",
        SESSION,
        "self.model.zero_grad",
        Words("no parameter has a gradient", "所有参数的梯度清零"),
    ),
    (r"L(\theta)", SESSION, "self.model.loss", Words("the loss, one number", "损失，一个数")),
    (
        r"\partial \theta \leftarrow \partial \theta + \mathrm{vjp}",
        SESSION,
        "loss.backward",
        Words("a gradient for each parameter, of its shape", "每个参数的梯度，形状与参数相同"),
    ),
    (
        r"\theta \leftarrow \theta'",
        SESSION,
        "self.optimizer.clipped_step",
        Words("new parameters and moments; the gradient's norm", "新的参数与矩；梯度的范数"),
    ),
)
SIZES = {"B": 2, "T": 3, "H": 5, "D": 7, "C": 35, "3C": 105, "F": 11, "V": 13}  # all different, so each names an axis


@block
def steps(page: Path, lang: str, *parts: str) -> str:
    """The lines of some parts of the forward pass: formula, call, place in the source, shape of the result."""
    rows = []
    for formula, given, called, which, name in (line for part in parts for line in LINES[part]):
        stem = APPLIED.get(called, called)
        own = link_equation(page, stem, lang) if stem in registry else ""
        rows.append((inline(formula), *_called(page, given, called, which), _shape(name), own))
    head = Words("Formula|Call|Where|Shape of the result|Its page", "公式|调用|位置|结果的形状|公式页面")
    return table(head, rows, lang)


@block
def training_steps(page: Path, lang: str) -> str:
    """One training step of the NumPy runtime: formula, call, place in the source, result."""
    rows = [(inline(formula), *_called(page, given, called, 0), out) for formula, given, called, out in LOOP]
    return table(Words("Formula|Call|Where|What comes out", "公式|调用|位置|得到什么"), rows, lang)


def _called(page: Path, given: str, called: str, which: int) -> tuple[str, str]:
    """Return a call as it is written, and a link to its line."""
    path, definition = located(given)
    inside = ast.walk(source.statement(path, definition))
    found = [node for node in inside if isinstance(node, ast.Call) and ast.unparse(node.func) == called]
    if which >= len(found):
        raise ByhandError(
            f"{page.name} shows call {which + 1} of {called} in {definition} of {source.shown(path)}, which has "
            f"{len(found)} calls of that name. Correct LINES or LOOP in {source.shown(Path(__file__))}."
        )
    call = sorted(found, key=lambda call: (call.lineno, call.col_offset))[which]
    text = ast.unparse(call).replace("'", '"')
    return f"`{text}`", link(page, f"{source.shown(path)}:{call.lineno}")


def _shape(name: str) -> str:
    """Return a result's shape in letters."""
    b, t, h, _, c, _, f, v = SIZES.values()
    config = ModelConfig(vocab_size=v, seq_len=t, d_model=c, n_heads=h, d_ff=f)
    letters = {length: letter for letter, length in SIZES.items()}
    return f"[{', '.join(letters[length] for length in pass_through(config, b, t).tensor(name).shape)}]"
