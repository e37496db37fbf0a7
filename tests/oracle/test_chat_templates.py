"""transformers writes conversations by a chat template as byhand does, and marks the same answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from byhand.architectures import LLAMA
from byhand.config import TrainConfig
from byhand.conversations.formats import Chat
from byhand.conversations.marks import unmarked
from byhand.conversations.messages import Message
from byhand.interop import exchange
from byhand.model import TinyGPT
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.symbols import byte_symbols
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


def exported(tokenizer, goal, place):
    """Write a small model that was trained on conversations; return the first file."""
    config = replace(
        LLAMA, vocab_size=max(256, tokenizer.vocab_size), seq_len=256, d_model=32, n_layers=1, n_heads=2,
        n_kv_heads=1, d_ff=64,
    )  # fmt: skip
    arrays = {name: p.data for name, p in TinyGPT(config, seed=1).parameters().items()}
    state = {"step": 0, "text": {}, "chat": {"format": "plain"}}
    run = Checkpoint(TrainConfig(model=config), arrays, {}, state, tokenizer=tokenizer)
    return exchange.write(run, goal, place)[0]


def bytes_and(*special):
    return BytePairTokenizer(dict(byte_symbols()), [], special={text: 256 + i for i, text in enumerate(special)})


OWN = {"bytes": BYTES, "an end": bytes_and("<|endoftext|>"), "chatml": bytes_and("<|im_start|>", "<|im_end|>")}


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("name", OWN)
def test_transformers_asks_an_exported_model_in_byhands_format(name, talk, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    messages = [Message(role, content) for role, content in TALKS[talk]]
    place = exported(OWN[name], "hf", tmp_path).parent
    theirs = transformers.AutoTokenizer.from_pretrained(place)
    found = theirs.apply_chat_template([m._asdict() for m in messages], add_generation_prompt=True, return_dict=True)
    assert found["input_ids"] == Chat(OWN[name]).prompt(messages)


@pytest.mark.parametrize("name", OWN)
def test_llama_cpp_asks_an_exported_model_in_byhands_format(name, tmp_path):
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    messages = [Message(role, content) for role, content in TALKS["system"] + TALKS["asked"]]
    p = llama_cpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(exported(OWN[name], "gguf", tmp_path)), 256, 1, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    asked = {"messages": [m._asdict() for m in messages], "max_tokens": 1, "temperature": 0, "verbose": True}
    said = llama_cpp.Server(p).handle_chat_completions(asked)
    said = said if isinstance(said, dict) else json.loads(said)
    chat = Chat(OWN[name])
    wanted = unmarked(chat.format.prompt(messages))
    assert said["__verbose"]["prompt"] == wanted.replace("\0", OWN[name].end_text.decode())
    assert said["usage"]["prompt_tokens"] == len(chat.prompt(messages))
