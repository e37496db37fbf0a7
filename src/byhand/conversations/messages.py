"""Messages of a conversation, and the two forms in which JSON has them.

OpenAI    {"messages": [{"role": "user", "content": "To be?"}, {"role": "assistant", "content": "Not to be."}]}
          a content may be a list of texts: [{"type": "text", "text": "To be?"}]
ShareGPT  {"conversations": [{"from": "human", "value": "To be?"}, {"from": "gpt", "value": "Not to be."}]}
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

from byhand.config_checks import brief
from byhand.errors import DataError

Role = Literal["system", "user", "assistant"]
ROLES = {**{role: role for role in get_args(Role)}, "developer": "system", "human": "user", "gpt": "assistant"}
FORMS = (("messages", "role", "content"), ("conversations", "from", "value"))
TOOLS = ("tool", "function", "function_call", "observation", "ipython")
WITHOUT_TOOLS = "Leave conversations with tools out."
EXAMPLE = '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'
OURS = "\ufdd0\ufdd1\ufdd2"  # noncharacters of Unicode, which texts must not have: `marks.py` says what they mark


class Message(NamedTuple):
    """What one side said."""

    role: Role
    content: str


Messages = Sequence[Message]


def conversation(found: Any, where: str) -> list[Message]:
    """Return the messages of an object of JSON, or of such a list; DataError with its place if it has none."""
    if isinstance(found, list):
        return [_message(each, *FORMS[0][1:], where) for each in found]
    form = next((form for form in FORMS if isinstance(found, dict) and form[0] in found), None)
    if form is None or not isinstance(found[form[0]], list):
        raise DataError(f"{where} has no list of messages. Write lines like {EXAMPLE}.")
    return [_message(each, *form[1:], where) for each in found[form[0]]]


def _message(found: Any, role: str, content: str, where: str) -> Message:
    if isinstance(found, Message):
        found = found._asdict()
    if isinstance(found, Mapping) and found.get("weight", 1) != 1:
        raise DataError(
            f"{where}: a message has the weight {brief(found['weight'])}, but all answers count alike here."
        )
    if isinstance(found, Mapping) and (found.get("tool_calls") or found.get("function_call")):
        raise DataError(f"{where}: a message calls tools, which is not read. {WITHOUT_TOOLS}")
    if isinstance(found, Mapping) and found.get(role) in TOOLS:
        raise DataError(f"{where}: a message is from {brief(found[role])}, which is not read. {WITHOUT_TOOLS}")
    if isinstance(found, Mapping) and isinstance(parts := found.get(content), list):
        found = {**found, content: "".join(_text_of(part, where) for part in parts)}
    if not isinstance(found, Mapping) or not isinstance(found.get(content), str):
        raise DataError(f"{where}: a message has no text as its {content!r}. Write lines like {EXAMPLE}.")
    if not isinstance(who := found.get(role), str) or who not in ROLES:
        raise DataError(f"{where}: a message is from {brief(who)}. Use system, user and assistant.")
    text = found[content]
    if bad := next((c for c in text if c in OURS or c == "\0" or "\ud800" <= c <= "\udfff"), None):
        raise DataError(f"{where}: a message holds U+{ord(bad):04X}, which no text has. Mend it, or remove it.")
    return Message(ROLES[who], text)  # pyright: ignore[reportArgumentType]


def _text_of(part: Any, where: str) -> str:
    """Return the text of a part of a message's content."""
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, Mapping) else part
    if not isinstance(part, Mapping) or kind != "text" or not isinstance(part.get("text"), str):
        raise DataError(f"{where}: a message has a part {brief(kind)}, but only text is read. Remove it.")
    return part["text"]


def shortened(
    messages: Messages, length: Callable[[Messages], int], most: int, half: int | None = None
) -> tuple[list[Message], bool]:
    """Return a conversation of at most `most` tokens, and whether it is all of it.

    It loses its oldest questions with their answers, as few as it must, at most down to the last question, which may
    be too long itself. What stands before the first question stays.

    half  whenever the conversation was full, it lost so many questions that at most these tokens were left: the loss
          stays the same from question to question until it is full again, and a cache serves those in between
    """
    if length(messages) <= most:
        return list(messages), True
    begins = [i for i, message in enumerate(messages) if message.role == "user"] or [0]
    head, last = messages[: begins[0]], len(begins) - 1

    def without(count: int) -> list[Message]:
        return [*head, *messages[begins[count] :]]

    lost = 0
    if half is not None and last:
        turns = [messages[begin:end] for begin, end in pairwise([*begins, len(messages)])]
        # the head's tokens, and those that a template adds to any conversation
        common = 2 * length([*head, *turns[0]]) - length([*head, *turns[0], *turns[0]])
        sizes = [length([*head, *turn]) - common for turn in turns]
        for i, turn in enumerate(turns):
            asked = length([*head, turn[0]])
            if asked + sum(sizes[lost:i]) > most:
                lost = next((n for n in range(lost + 1, i) if asked + sum(sizes[n:i]) <= half), i)
    lost = bisect_left(range(len(begins)), True, max(1, lost), key=lambda count: length(without(count)) <= most)
    return without(min(lost, last)), False
