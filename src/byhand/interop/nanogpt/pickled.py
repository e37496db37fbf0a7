"""The pickle of a torch.save, read without unpickling: plain values, and the place of each tensor's data.

An interpreter of the opcodes that torch's weights-only loader knows. It calls nothing: known functions in a pickle
become tensors and tables here, and any other name is refused. It hashes only strings, so that no keys collide:
tensors and settings have names, and items under any other key are stored under "".

Source      https://docs.python.org/3/library/pickletools.html
"""

from __future__ import annotations

import math
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

STORAGE = re.compile(r"torch ([A-Z][A-Za-z0-9]*)Storage")
TABLE, TENSOR, PARAMETER = (
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
)
VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "SHORT_BINSTRING"}
EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "NONE": lambda: None, "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}  # fmt: skip
T = TypeVar("T")


class NotTensors(Exception):
    """A pickle has a function or an opcode that makes neither tensors nor plain values."""


@dataclass(frozen=True)
class Storage:
    """A flat buffer of numbers in its own file.

    kind   torch's name of their type: "Float", "BFloat16"
    key    the file's
    count  of numbers
    """

    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class StoredTensor:
    """A tensor: its storage, its offset there, and whether its numbers are negated.

    contiguous  row-major, without broadcast or gaps
    """

    storage: Storage
    begin: int
    shape: tuple[int, ...]
    contiguous: bool
    negated: bool


@dataclass(frozen=True)
class _Named:
    """A function or a storage's type, by its name."""

    name: str


def loaded(content: bytes) -> Any:
    """Return a pickle's content. NotTensors if it has anything else, ValueError if it is not torch's."""
    try:
        return _interpreted(content)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no pickle of torch: {error}") from None


def _interpreted(content: bytes) -> Any:
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    storages: dict[str, Storage] = {}

    def taken() -> list[Any]:
        """Pop the stack down to the mark."""
        begin = marks.pop()
        items = stack[begin:]
        del stack[begin:]
        return items

    for opcode, said, _ in pickletools.genops(content):
        name, argument = opcode.name, cast("Any", said)
        if name in VALUES:
            stack.append(argument)
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            stack.append(tuple(taken()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            items = [stack.pop() for _ in opcode.stack_before]
            stack.append(tuple(reversed(items)))
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else taken()
            _as(list, stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else taken()
            for key, value in zip(items[::2], items[1::2], strict=True):
                _as(dict, stack[-1])[key if isinstance(key, str) else ""] = value
        elif name == "BUILD":  # attributes of a table: not needed
            stack.pop()
            _as(dict, stack[-1])
        elif name == "GLOBAL" and (argument in (TABLE, TENSOR, PARAMETER) or STORAGE.fullmatch(argument)):
            stack.append(_Named(argument))
        elif name == "BINPERSID":
            storage = _storage(_as(tuple, stack.pop()))
            if storages.setdefault(storage.key, storage) != storage:
                raise ValueError(f"two storages {storage.key!r}")
            stack.append(storage)
        elif name == "REDUCE":
            arguments, function = _as(tuple, stack.pop()), _as(_Named, stack.pop())
            stack.append(_made(function.name, arguments))
        elif name == "STOP":
            return stack.pop()
        elif name not in ("PROTO", "FRAME"):
            raise NotTensors(argument if name in ("GLOBAL", "INST") else name)
    raise ValueError("no end")


def _as(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} in the place of a {kind.__name__}")
    return value


def _storage(said: tuple[Any, ...]) -> Storage:
    """Return the storage of a persistent id: ("storage", type, key, device, count)."""
    what, kind, key, _, count = said
    known = STORAGE.fullmatch(_as(_Named, kind).name)
    if what != "storage" or known is None or _as(int, count) < 0:
        raise ValueError("no storage")
    return Storage(known[1], _as(str, key), count)


def _made(name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the table or the tensor made by a function."""
    if name == TABLE and not arguments:
        return {}
    if name == PARAMETER:
        return _as(StoredTensor, arguments[0])
    if name != TENSOR:
        raise NotTensors(name)
    storage, begin, shape, strides, _, _, *more = arguments
    marks = _as(dict, more[0]) if more else {}
    shape, strides = _as(tuple, shape), _as(tuple, strides)
    if len(shape) > 8 or not all(type(n) is int and 0 <= n < 1 << 48 for n in (begin, *shape, *strides)):
        raise ValueError("no shape")
    if marks.keys() - {"neg"}:
        raise NotTensors(f"{name} with {min(marks.keys() - {'neg'})}")
    along = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    contiguous = all(n == 1 or step == due for n, step, due in zip(shape, strides, along, strict=True))
    return StoredTensor(_as(Storage, storage), begin, shape, contiguous, marks.get("neg") is True)
