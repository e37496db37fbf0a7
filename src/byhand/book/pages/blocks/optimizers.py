"""Generated numbers of optimisers: singular values under Newton-Schulz, groups, rates by schedule, averages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import block, table
from byhand.book.words.language import Words
from byhand.config import GROUPS, ModelConfig, OptimConfig
from byhand.equations.muon import STEPS, stretch
from byhand.equations.orthogonalise import A, B, C, orthogonalise
from byhand.model import declared
from byhand.optim import decay_at, optimizer_of
from byhand.schedule import learning_rate

VALUES = (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 1.0)  # singular values
RUN = 1000  # updates
UPDATES = (1, 50, 100, 300, 401, 700, 1000)
OF_GROUPS = {
    "embeddings": Words("embeddings", "嵌入表"),
    "head": Words("head", "语言模型头"),
    "matrices": Words("matrices", "矩阵"),
    "vectors": Words("vectors", "向量（偏置、增益）"),
}


@block
def singular_values(page: Path, lang: str) -> str:
    """What each step makes of some singular values."""
    rows = [(f"{s:g}", *(f"{x:.3f}" for x in path)) for s, path in zip(VALUES, lifted().T, strict=True)]
    steps = "|".join(str(k) for k in range(1, STEPS + 1))
    return table(Words(f"Singular value at first; after step|{steps}", f"奇异值|{steps}"), rows, lang)


def lifted() -> np.ndarray:
    """Return (steps, values): the singular values after each step."""
    found = [np.array(VALUES)]
    for _ in range(STEPS):
        s = found[-1]
        found.append(A * s + B * s**3 + C * s**5)
    return np.array(found[1:])


@block
def worked_rows(page: Path, lang: str) -> str:
    """The worked matrix's singular values before and after one step, beside those after five."""
    from byhand.book.entries.contract import ENTRIES

    g = array(ENTRIES["orthogonalise"].inputs["g"])
    made = {0: g / np.linalg.norm(g)} | {k: orthogonalise.forward(g, steps=k)[0] for k in (1, STEPS)}
    rows = [(k, *(f"{s:.3f}" for s in np.linalg.svd(x, compute_uv=False))) for k, x in made.items()]
    return table(
        Words("Steps|Larger singular value|Smaller singular value", "步数|较大的奇异值|较小的奇异值"), rows, lang
    )


@block
def groups(page: Path, lang: str) -> str:
    """The groups of the default model's parameters, their numbers, and what updates them with `--optimizer muon`."""
    config = OptimConfig(optimizer="muon")
    parameters = declared(ModelConfig())
    by_muon = optimizer_of(config, parameters).parts
    rows = []
    for group in GROUPS:
        names = [name for name, p in parameters.items() if p.group == group]
        count = sum(int(np.prod(parameters[n].shape)) for n in names)
        shown = ", ".join(
            f"`{name}`" for name in dict.fromkeys(n.rpartition(".")[2] if "blocks" in n else n for n in names)
        )
        rule = "Muon" if set(names) <= set(by_muon) else "AdamW"
        flag = {"embeddings": "embedding_lr", "matrices": "muon_lr"}.get(group, f"{group.rstrip('s')}_lr")
        rows.append(
            (
                OF_GROUPS[group],
                shown,
                f"{count:,}",
                rule,
                f"`--{flag.replace('_', '-')}`",
                f"{config.rate_of(group):g}",
            )
        )
    head = Words("Group|Parameters|Numbers|Updated by|Flag|Rate", "组|参数|参数个数|更新方法|选项|最高学习率")
    return table(head, rows, lang)


@block
def stretches(page: Path, lang: str) -> str:
    """The factor s of Muon for the matrices of the default model."""
    parts = optimizer_of(OptimConfig(optimizer="muon"), declared(ModelConfig())).parts
    shapes = {name.rpartition(".")[2]: (declared(ModelConfig())[name].shape, n) for name, n in parts.items()}
    rows = [
        (f"`{name}`", n, f"({shape[0]}, {shape[1] // n})", f"{stretch(shape, n):g}")
        for name, (shape, n) in shapes.items()
    ]
    return table(Words("Weight|Matrices|Shape of each|s", "权重|矩阵数|各自的形状|s"), rows, lang)


@block
def schedules(page: Path, lang: str) -> str:
    """The learning rate of some updates under each schedule, as a share of the highest."""
    kinds = {
        "cosine": OptimConfig(),
        "constant": OptimConfig(schedule="constant"),
        "linear": OptimConfig(schedule="linear"),
        "linear, cooldown 0.6, min_lr 0": OptimConfig(schedule="linear", cooldown=0.6, min_lr=0.0),
    }
    rows = [(n, *(f"{learning_rate(c, n - 1, RUN) / c.lr:.3f}" for c in kinds.values())) for n in UPDATES]
    head = Words(f"Update (of {RUN})|{'|'.join(kinds)}", f"第几次更新，共 {RUN} 次|{'|'.join(kinds)}")
    return table(head, rows, lang)


@block
def averaging(page: Path, lang: str) -> str:
    """How much of the average stays in a step, and how many steps it reaches back, for a decay of 0.999."""
    rows = [
        (t, f"{decay_at(t, 0.999):.4f}", f"{1 / (1 - decay_at(t, 0.999)):,.0f}") for t in (1, 10, 100, 1000, 10000)
    ]
    heads = Words("Step t|d_t (d = 0.999)|Steps averaged, about", "第几步 t|d_t（d = 0.999）|大约平均了多少步")
    return table(heads, rows, lang)
