"""The names that a pickle loads and the depth of its nested tuples, found without unpickling it.

Hashing a tuple as a key takes one step for each path to the innermost: 2^n steps for n nested tuples that each hold
the next one twice, and a stack as deep as they are.
"""

from __future__ import annotations

import pickletools
from typing import Any

CALLING = {"GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"}


def calls(content: bytes) -> set[str]:
    """Return the names that a pickle loads, "module name" each; other ways to name something by the opcode's name."""
    found = ((opcode.name, argument) for opcode, argument, _ in pickletools.genops(content) if opcode.name in CALLING)
    return {str(argument) if name in ("GLOBAL", "INST") else name for name, argument in found}


def levels(content: bytes) -> int:
    """Return the depth of nested tuples; ValueError if the bytes are no pickle."""
    stack: list[Any] = []
    memo: dict[Any, int] = {}
    deepest = 0
    for opcode, argument, _ in pickletools.genops(content):
        name, level = opcode.name, 0
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else argument] = _top(stack)
            continue
        if name == "MARK":
            stack.append(None)
            continue
        if name == "DUP":
            stack.append(_top(stack))
            continue
        taken = _taken(stack, [each.name for each in opcode.stack_before])
        if name in ("GET", "BINGET", "LONG_BINGET"):
            level = memo.get(argument, 0)
        elif "TUPLE" in name:
            level = 1 + max(taken, default=0)
            deepest = max(deepest, level)
        stack += [level] * len(opcode.stack_after)
    return deepest


def _top(stack: list[Any]) -> int:
    if not stack or stack[-1] is None:
        raise ValueError("the stack is empty")
    return stack[-1]


def _taken(stack: list[Any], before: list[str]) -> list[int]:
    """Pop an opcode's arguments: a fixed number, or all down to the mark."""
    taken: list[int] = []
    if "mark" in before:
        while stack and stack[-1] is not None:
            taken.append(stack.pop())
        before = before[: before.index("mark") + 1]
    for _ in before:
        if not stack:
            raise ValueError("the stack is empty")
        taken.append(stack.pop() or 0)
    return taken
