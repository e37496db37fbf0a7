"""Generated numbers of optimisers: singular values under Newton-Schulz, groups, rates by schedule, averages."""

from __future__ import annotations

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import Rows, table_block
from byhand.book.words.language import Words
from byhand.config import GROUPS, ModelConfig, OptimConfig
from byhand.engine.equation import registry
from byhand.equations.muon import STEPS, stretch
from byhand.equations.orthogonalise import A, B, C, orthogonalise
from byhand.model import declared
from byhand.optim import decay_at
from byhand.schedule import learning_rate

VALUES = (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 1.0)  # singular values
RUN = 1000  # updates
UPDATES = (1, 50, 100, 300, 401, 700, 1000)
SCHEDULES = {
    "cosine": OptimConfig(),
    "constant": OptimConfig(schedule="constant"),
    "linear": OptimConfig(schedule="linear"),
    "linear, cooldown 0.6, min_lr 0": OptimConfig(schedule="linear", cooldown=0.6, min_lr=0.0),
}
MUON = OptimConfig(optimizer="muon")
OF_GROUPS = {  # the name of a group of parameters, and the flag of its learning rate
    "embeddings": (Words("embeddings", "嵌入表"), "--embedding-lr"),
    "head": (Words("head", "语言模型头"), "--head-lr"),
    "matrices": (Words("matrices", "矩阵"), "--muon-lr"),
    "vectors": (Words("vectors", "向量（偏置、增益）"), "--vector-lr"),
}
_STEPS = "|".join(str(k) for k in range(1, STEPS + 1))
_KINDS = "|".join(SCHEDULES)


@table_block(f"Singular value at first; after step|{_STEPS}", f"奇异值|{_STEPS}")
def singular_values() -> Rows:
    """Some singular values after each step."""
    for s, path in zip(VALUES, lifted().T, strict=True):
        yield f"{s:g}", *(f"{x:.3f}" for x in path)


def lifted() -> np.ndarray:
    """Return (steps, values): the singular values after each step."""
    found = [np.array(VALUES)]
    for _ in range(STEPS):
        s = found[-1]
        found.append(A * s + B * s**3 + C * s**5)
    return np.array(found[1:])


@table_block("Steps|Larger singular value|Smaller singular value", "步数|较大的奇异值|较小的奇异值")
def worked_rows() -> Rows:
    """The worked matrix's singular values before the steps, after one and after five."""
    g = array(ENTRIES["orthogonalise"].inputs["g"])
    for k in (0, 1, STEPS):
        x = orthogonalise.forward(g, steps=k)[0] if k else g / np.linalg.norm(g)
        yield k, *(f"{s:.3f}" for s in np.linalg.svd(x, compute_uv=False))


@table_block("Group|Parameters|Numbers|Updated by|Flag|Rate", "组|参数|参数个数|更新方法|选项|最高学习率")
def groups() -> Rows:
    """The groups of the default model's parameters, their sizes, and their update rule with `--optimizer muon`."""
    parameters = declared(ModelConfig())
    for group in GROUPS:
        names = [name for name, p in parameters.items() if p.group == group]
        short = dict.fromkeys(n.rpartition(".")[2] if "blocks" in n else n for n in names)
        count = sum(int(np.prod(parameters[n].shape)) for n in names)
        rule = registry[MUON.rule_of(group)].title.removesuffix(" update")
        words, flag = OF_GROUPS[group]
        shown = ", ".join(f"`{name}`" for name in short)
        yield words, shown, f"{count:,}", rule, f"`{flag}`", f"{MUON.rate_of(group):g}"


@table_block("Weight|Matrices|Shape of each|s", "权重|矩阵数|各自的形状|s")
def stretches() -> Rows:
    """The factor s of Muon for the matrices of the default model."""
    parameters = declared(ModelConfig())
    matrices = {name: p for name, p in parameters.items() if p.group == "matrices"}
    shapes = {name.rpartition(".")[2]: (p.shape, p.packed) for name, p in matrices.items()}
    for name, (shape, n) in shapes.items():
        yield f"`{name}`", n, f"({shape[0]}, {shape[1] // n})", f"{stretch(shape, n):g}"


@table_block(f"Update (of {RUN})|{_KINDS}", f"第几次更新，共 {RUN} 次|{_KINDS}")
def schedules() -> Rows:
    """The learning rate of some updates under each schedule, as a share of the highest."""
    for n in UPDATES:
        yield n, *(f"{learning_rate(config, n - 1, RUN) / config.lr:.3f}" for config in SCHEDULES.values())


@table_block("Step t|d_t (d = 0.999)|Steps averaged, about", "第几步 t|d_t（d = 0.999）|大约平均了多少步")
def averaging() -> Rows:
    """The decay of the average at some steps, and the number of steps it averages, for a decay of 0.999."""
    for t in (1, 10, 100, 1000, 10000):
        d = decay_at(t, 0.999)
        yield t, f"{d:.4f}", f"{1 / (1 - d):,.0f}"
