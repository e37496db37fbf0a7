"""Generated blocks about devices and hosts: worked numbers, parts that devices hold, bytes sent, time-outs."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from byhand.architectures import GPT2
from byhand.book.finding import source
from byhand.book.numbers.closed_form import matrix
from byhand.book.pages.blocks.excerpts import link_definition, located
from byhand.book.pages.blocks.family import PUBLISHED, TOTAL
from byhand.book.pages.blocks.markdown import Rows, block, display_lines, table, table_block
from byhand.book.pictures.devices import EIGHT, SMALL, axes_shown
from byhand.book.words.language import Words
from byhand.equations.linear import linear
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.process_group import PATIENCE
from byhand.runtimes.xla.mesh import Mesh
from byhand.runtimes.xla.placing import held_shape, least_sent, part_shape
from byhand.runtimes.xla.watch import LOST, OUTSIDE

X, W, NEXT, D_Y = (np.array(a) for a in ([[1, 2], [3, 1]], [[1, 2], [0, 1]], [[1, 0], [2, 1]], [[1, 0], [1, 2]]))
EVEN = replace(GPT2, vocab_size=50304)  # a vocabulary that devices can divide
CONFIGS = {"small": SMALL, "gpt2": EVEN}
BATCH_ROWS = 8
STATE_BYTES = 12  # a number and its two moments in float32
XLA_TESTS = "tests/runtimes/xla/test_session.py"


def of_rows() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each row's result, and its gradient of the weight, as a device alone with that row computes them."""
    found = []
    for row in range(len(X)):
        y, saved = linear.forward(X[row : row + 1], W)
        found.append((y, linear.vjp(saved, D_Y[row : row + 1])[1]))
    return found


def of_columns() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each device's result with one column of W, and its part of the next layer's result."""
    found = []
    for column in range(len(X)):
        y, _ = linear.forward(X, W[:, column : column + 1])
        found.append((y, linear.forward(y, NEXT[column : column + 1])[0]))
    return found


@block
def shared(page: Path, lang: str, axis: str) -> str:
    """One linear layer on two devices that share rows (`data`), columns too (`fsdp`), or columns alone (`tensor`)."""
    devices = [rf"\text{{{Words(f'device {i}: ', f'设备 {i}：').said(lang)}}}" for i in range(2)]
    return display_lines({"data": _by_data, "fsdp": _by_fsdp, "tensor": _by_tensor}[axis](devices))


def _by_data(devices: list[str]) -> list[str]:
    lines = [rf"X = {_m(X)}, \; W = {_m(W)}", rf"\partial Y = {_m(D_Y)}"]
    for i, (device, (y, d)) in enumerate(zip(devices, of_rows(), strict=True)):
        lines.append(rf"{device} y_{i} = x_{i} W = {_m(y)}")
        lines.append(rf"\phantom{{{device}}} \partial W_{i} = x_{i}^{{\top}} \partial y_{i} = {_m(d)}")
    return [*lines, _sum(d for _, d in of_rows()), rf"= {_m(_gradient())} = X^{{\top}} \partial Y"]


def _by_fsdp(devices: list[str]) -> list[str]:
    columns = [np.s_[:, i : i + 1] for i in range(2)]
    gradients = [d for _, d in of_rows()]
    lines = [rf"{device} W_{{:,{i}}} = {_m(W[columns[i]])}" for i, device in enumerate(devices)]
    lines.append(rf"W = [W_{{:,0}} \; W_{{:,1}}] = {_m(W)}")
    lines += [rf"{device} \partial W_{i} = {_m(gradients[i])}" for i, device in enumerate(devices)]
    for i, device in enumerate(devices):
        worked = _sum(d[columns[i]] for d in gradients)
        lines.append(rf"{device} \partial W_{{:,{i}}} = {worked} = {_m(_gradient()[columns[i]])}")
    return lines


def _by_tensor(devices: list[str]) -> list[str]:
    lines = [rf"X = {_m(X)}, \; W = {_m(W)}", rf"W' = {_m(NEXT)}"]
    for i, (device, (y, z)) in enumerate(zip(devices, of_columns(), strict=True)):
        lines.append(rf"{device} Y_{{:,{i}}} = X\, W_{{:,{i}}} = {_m(y)}")
        lines.append(rf"\phantom{{{device}}} Y_{{:,{i}}}\, W'_{{{i},:}} = {_m(z)}")
    both = linear.forward(linear.forward(X, W)[0], NEXT)[0]
    return [*lines, _sum(z for _, z in of_columns()), rf"= {_m(both)} = X\, W\, W'"]


def _gradient() -> np.ndarray:
    """Return the gradient of the weight, as a single device computes it."""
    return linear.vjp(linear.forward(X, W)[1], D_Y)[1]


def _m(array: np.ndarray) -> str:
    return matrix(array.tolist())


def _sum(parts: Iterable[np.ndarray]) -> str:
    return " + ".join(map(_m, parts))


@block
def holding(page: Path, lang: str, name: str) -> str:
    """Every parameter of a config on eight devices: its shape, a device's part, and the mesh axes that divide it."""
    config, rows, whole, held = CONFIGS[name], [], 0, 0
    for full, parameter in declared(config).items():
        part = part_shape(parameter, EIGHT)
        whole, held = whole + math.prod(parameter.shape), held + math.prod(part)
        if full.startswith(BLOCKS) and not full.startswith(f"{BLOCKS}.0."):
            continue
        shown = full.replace(f"{BLOCKS}.0.", f"{BLOCKS}.*.")
        sizes = (_shape(held_shape(parameter), parameter), _shape(part, parameter))
        rows.append((f"`{shown}`", *sizes, axes_shown(parameter, EIGHT)))
    head = Words("Parameter|Whole|A device holds|Axes / shared by", "参数|整体|每台设备持有|各轴 / 沿哪个轴切分")
    said = Words(
        f"In total {whole:,} parameters, inside and outside the {config.n_layers} blocks. A device holds {held:,} "
        f"of them, which is {held / whole:.1%}; with both moments they take {_bytes(STATE_BYTES * held)} instead of "
        f"{_bytes(STATE_BYTES * whole)}.",
        f"连同 {config.n_layers} 个块，共 {whole:,} 个数；每台设备持有 {held:,} 个，占 {held / whole:.1%}，"
        f"加上两个矩估计，占用 {_bytes(STATE_BYTES * held)}，而不是 {_bytes(STATE_BYTES * whole)}。",
    ).said(lang)
    return f"{table(head, rows, lang)}\n\n{said}"


def _shape(shape: tuple[int, ...], parameter: Parameter) -> str:
    if parameter.packed == 1:
        return str(list(shape))
    *outer, packed, last = shape
    return f"[{', '.join([*map(str, outer), f'{packed} × {last}'])}]"


def _bytes(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count:,.0f} B"


_WINDOWS = "|".join(f"{BATCH_ROWS} × {config.seq_len}" for config in CONFIGS.values())


@table_block(f"Exchange|{_WINDOWS}|What is sent", f"交换|{_WINDOWS}|内容")
def sending() -> Rows:
    """The bytes that each of the eight devices sends in a step, by exchange, of the small config and of GPT-2."""
    counts = [least_sent(config, EIGHT, (BATCH_ROWS, config.seq_len)) for config in CONFIGS.values()]
    what = {
        ("all-gather", "fsdp"): Words(
            "parameters before use, those of blocks twice: forward and back",
            "使用前的参数；块的参数发送两次：前向、反向各一次",
        ),
        ("reduce-scatter", "fsdp"): Words("their gradients, each part to its holder", "它们的梯度，各部分归其持有者"),
        ("all-reduce", "data"): Words("gradients of the parts that both devices hold", "双方都持有的那些部分的梯度"),
        ("all-reduce", "data,fsdp"): Words("gradients of parameters without width", "不含 width 轴的参数的梯度"),
        ("all-reduce", "tensor"): Words(
            "the stream or its gradient, once for each weight that is shared",
            "残差流或它的梯度，每个被切分的权重一次",
        ),
    }
    for (kind, axis), words in what.items():
        yield f"{kind}: `{axis}`", *(_bytes(count[kind, axis]) for count in counts), words
    yield TOTAL, *(_bytes(sum(count.values())) for count in counts), ""


@table_block("`wte`|A device of `tensor=2` holds", "`wte`|`tensor=2` 的每台设备持有")
def vocabularies() -> Rows:
    """The token embedding of GPT-2's own vocabulary, and of one that two devices divide."""
    for config in (PUBLISHED, EVEN):
        parameter = Parameter((config.vocab_size, config.d_model), axes=("vocab", "width"))
        yield list(parameter.shape), list(part_shape(parameter, Mesh(tensor=2)))


@block
def waiting(page: Path, lang: str) -> str:
    """The seconds after which hosts give up on one that does not answer."""
    rows = [
        (Words("died, or cannot be reached", "已退出，或网络不通"), f"{LOST:.0f} s", "runtimes/xla/watch.py:LOST"),
        (Words("hangs in a step", "卡在某一步"), f"{PATIENCE:.0f} s", "runtimes/process_group.py:PATIENCE"),
        (
            Words("does not join at the start; hangs while it compiles or saves", "启动时没有加入；编译或保存时卡住"),
            f"{OUTSIDE} × {PATIENCE:.0f} s",
            "runtimes/xla/watch.py:OUTSIDE",
        ),
    ]
    head = Words("A host that|is given up after|Where", "主机的状况|多久后不再等待|位置")
    return _with_links(page, lang, head, rows)


@block
def equality(page: Path, lang: str) -> str:
    """Results that do not depend on how devices share the work, and the test of each."""
    close = ast.literal_eval(source.statement(*located(f"{XLA_TESTS}:LIKE_ONE_DEVICE")).value)
    rows = [
        (
            Words("which rows a step reads", "某一步读取哪些行"),
            Words("the same", "相同"),
            "tests/corpus/test_dataset.py:test_a_batch_depends_on_its_number_and_the_seed_alone",
        ),
        (
            Words("losses of fifty steps on any mesh", "任何网格上五十步的损失"),
            Words(f"within {close:.0e} of one device's", f"与单台设备相差不超过 {close:.0e}"),
            f"{XLA_TESTS}:test_fifty_steps_on_every_mesh_are_those_of_one_device",
        ),
        (
            Words("a resumed run on the same mesh", "在同一网格上续训"),
            Words("every bit", "逐位相同"),
            "tests/runtimes/test_training.py:test_a_run_that_is_taken_up_has_the_bits_of_an_uninterrupted_one",
        ),
        (
            Words("several hosts, compared with one process on the same mesh", "多台主机，或单个进程用同样的网格"),
            Words("every bit", "逐位相同"),
            "tests/cli/runs/test_hosts.py:test_a_signal_to_one_stops_all_and_they_go_on_bit_for_bit",
        ),
    ]
    return _with_links(page, lang, Words("What|Equal|Test", "比较的内容|一致程度|测试"), rows)


def _with_links(page: Path, lang: str, head: Words, rows: Iterable[tuple[object, object, str]]) -> str:
    """Return a table whose last column names definitions, with these as links."""
    return table(head, ((what, how, link_definition(page, given)) for what, how, given in rows), lang)
