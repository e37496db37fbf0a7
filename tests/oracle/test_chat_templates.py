"""transformers writes conversations by a chat template as byhand does, and marks the same answers."""

from __future__ import annotations

import pytest

from byhand.conversations.formats import Chat
from byhand.conversations.marks import unmarked
from byhand.conversations.messages import Message
from conversations.templates import STYLES, ZEPHYR, tokenizer

pytestmark = pytest.mark.oracle
TALKS = {
    "one": [("user", "hello the\n"), ("assistant", " the hello")],
    "two": [("user", '<b>"hé"</b> & 你好'), ("assistant", "a\n\nb "), ("user", "more"), ("assistant", "less")],
    "system": [("system", " be brief "), ("user", "hello"), ("assistant", "ou")],
    "asked": [("user", "hello"), ("assistant", "the"), ("user", " and?")],
}


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("style", [*STYLES, "zephyr"])
def test_the_texts_are_those_of_transformers(style, talk):
    pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    from transformers.utils.chat_template_utils import render_jinja_template

    source = (STYLES | {"zephyr": ZEPHYR})[style]
    messages = [Message(role, content) for role, content in TALKS[talk]]
    dicts = [message._asdict() for message in messages]
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    form = Chat(tokenizer(source)).format

    def theirs(prompt):
        (text,), _ = render_jinja_template([dicts], chat_template=source, add_generation_prompt=prompt, **tokens)
        return text

    if (style, talk) == ("gemma", "system"):
        with pytest.raises(Exception, match="no system role"):
            theirs(False)
        with pytest.raises(Exception, match=r"refuses a conversation: no system role\."):
            form.pieces(messages)
        return
    assert "".join(unmarked(piece.text) for piece in form.pieces(messages)) == theirs(False)
    assert unmarked(form.prompt(messages)) == theirs(True)


@pytest.mark.parametrize("talk", TALKS)
def test_a_template_that_tells_marks_what_transformers_marks(talk):
    pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    from transformers.utils.chat_template_utils import render_jinja_template

    messages = [Message(role, content) for role, content in TALKS[talk]]
    (text,), (spans,) = render_jinja_template(
        [[message._asdict() for message in messages]], chat_template=STYLES["told"], bos_token="<s>",
        return_assistant_tokens_mask=True,
    )  # fmt: skip
    pieces = Chat(tokenizer(STYLES["told"])).format.pieces(messages)
    assert [piece.text for piece in pieces if piece.learnt] == [text[begin:end] for begin, end in spans]
