"""Messages of a conversation, and their two forms in JSON.

OpenAI    {"messages": [{"role": "user", "content": "To be?"}, {"role": "assistant", "content": "Not to be."}]}
          a content may be a list of texts: [{"type": "text", "text": "To be?"}]
ShareGPT  {"conversations": [{"from": "human", "value": "To be?"}, {"from": "gpt", "value": "Not to be."}]}

We also read a system text beside the list (`SYSTEM`), an assistant's thoughts (`THOUGHTS`), and whether an answer is
learnt (`FLAGS`). Any other field of a message is refused, since it may change what is learnt; beside the list, only
one whose name says so (`CHANGING`): files are full of ids, sources and scores.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

from byhand.config_checks import brief
from byhand.errors import DataError

Role = Literal["system", "user", "assistant"]
ROLES = {**{role: role for role in get_args(Role)}, "developer": "system", "human": "user", "gpt": "assistant"}
FORMS = (("messages", "role", "content"), ("conversations", "from", "value"))
SYSTEM = ("system", "system_prompt", "system_message")
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
FLAGS = ("train", "training", "learn", "loss", "weight", "loss_weight", "loss_mask")
CHANGING = re.compile(
    "tools?|functions?|documents?|context|system|prompt|instructions?|template|kwargs|weights?|masks?|train|training|"
    "trainable|learn|loss|labels|reasoning|thinking|thoughts?|messages?|conversations?|images?|videos?|audios?"
)
ABOUT = re.compile("ids?|hash|name|type|source|count|length|tokens")  # prompt_id does not change a prompt
TOOLS = ("tool", "function", "function_call", "observation", "ipython")
WITHOUT_TOOLS = "Leave conversations with tools out."
EXAMPLE = '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'
OURS = "".join(map(chr, range(0xFDD0, 0xFDF0)))  # noncharacters of Unicode, which no text has: see `marks.py`
UNFIT = re.compile(f"[\0\ud800-\udfff{OURS}]")


class Message(NamedTuple):
    """A message of one side.

    train     false: an answer that is not learnt
    thoughts  the assistant's thoughts, by name of the field: a template may write them
    """

    role: Role
    content: str
    train: bool | None = None
    thoughts: tuple[tuple[str, str], ...] = ()

    @property
    def learnt(self) -> bool:
        """Whether it is an answer to learn."""
        return self.role == "assistant" and self.train is not False

    def as_json(self) -> dict[str, Any]:
        """Return the object that `conversation` reads as the same message."""
        train = {} if self.train is None else {"train": self.train}
        return {"role": self.role, "content": self.content, **train, **dict(self.thoughts)}


Messages = Sequence[Message]


def conversation(found: Any, where: str) -> list[Message]:
    """Return the messages of a JSON object, or of such a list; DataError with its place if there are none."""
    if isinstance(found, list):
        return [_message(each, *FORMS[0][1:], where) for each in found]
    form = next((form for form in FORMS if isinstance(found, dict) and form[0] in found), None)
    if form is None or not isinstance(found[form[0]], list):
        raise DataError(f"{where} has no list of messages. Write lines like {EXAMPLE}.")
    messages = [_message(each, *form[1:], where) for each in found[form[0]]]
    said = {message.content for message in messages}
    for name, value in found.items():
        if name == form[0] or _empty(value) or (isinstance(value, str) and value in said):
            continue
        if name in SYSTEM and isinstance(value, str) and not any(message.role == "system" for message in messages):
            messages.insert(0, _message({"role": "system", "content": value}, *FORMS[0][1:], where))
        elif not isinstance(name, str) or (changes(name, CHANGING) and not (name in FLAGS and _flag(value))):
            raise DataError(f"{where}: {name!r} beside the messages is not read, but may change them. Remove it.")
    return messages


def changes(name: str, words: re.Pattern[str]) -> bool:
    """Return whether a field's name has one of these words, and does not name something about it, as in `ABOUT`."""
    parts = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
    return any(map(words.fullmatch, parts)) and not ABOUT.fullmatch(parts[-1])


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def _flag(value: Any) -> bool | None:
    """Return a flag or a weight that is 0 or 1; None if it is neither."""
    return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None


def _message(found: Any, role: str, content: str, where: str) -> Message:
    if isinstance(found, Message):
        found = found.as_json()
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
    train, thoughts = None, list[tuple[str, str]]()
    for name, value in found.items():
        if name in (role, content) or _empty(value):
            continue
        if name in THOUGHTS and ROLES[who] == "assistant" and isinstance(value, str):
            thoughts.append((name, _text(value, where)))
        elif name not in FLAGS or (flag := _flag(value)) is None:
            raise DataError(
                f"{where}: a message has the field {name!r} ({brief(value)}), which is not read. Remove it."
            )
        elif flag and ROLES[who] != "assistant" and name != "weight":
            raise DataError(
                f"{where}: {name!r} asks to learn what {who!r} says, but only answers are learnt. Remove it."
            )
        elif not flag and ROLES[who] == "assistant":
            train = False
    return Message(ROLES[who], _text(found[content], where), train, tuple(thoughts))  # pyright: ignore[reportArgumentType]


def _text(text: str, where: str) -> str:
    if bad := UNFIT.search(text):
        raise DataError(f"{where}: a message holds U+{ord(bad[0]):04X}, which is not a character. Remove it.")
    return text


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
    """Return a conversation of at most `most` tokens, and whether it is complete.

    It loses as few of its oldest questions, with their answers, as it must; the last question stays even if it is too
    long. Messages before the first question stay.

    half  each time the conversation was full, it was cut to at most these tokens: the cut then stays the same from
          question to question until it is full again, so a cache serves those in between
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
