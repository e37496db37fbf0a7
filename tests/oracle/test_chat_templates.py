"""transformers writes conversations by a chat template as byhand does, and marks the same answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from byhand.architectures import LLAMA
from byhand.config import TrainConfig
from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message
from byhand.interop import exchange
from byhand.model import TinyGPT
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.hugging_face import as_hugging_face
from byhand.tokenizers.symbols import byte_symbols
from conversations.families import FAMILIES, OWN, with_template
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
    dicts = [message.as_json() for message in messages]
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
    shown = form.marks.shown
    assert "".join(piece.text for piece in form.pieces(messages)).translate(shown) == theirs(False)
    assert form.prompt(messages).translate(shown) == theirs(True)


@pytest.mark.parametrize("talk", TALKS)
def test_a_template_that_tells_marks_what_transformers_marks(talk):
    pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    from transformers.utils.chat_template_utils import render_jinja_template

    messages = [Message(role, content) for role, content in TALKS[talk]]
    (text,), (spans,) = render_jinja_template(
        [[message.as_json() for message in messages]], chat_template=STYLES["told"], bos_token="<s>",
        return_assistant_tokens_mask=True,
    )  # fmt: skip
    form = Chat(tokenizer(STYLES["told"])).format
    assert [piece.text.translate(form.marks.shown) for piece in form.pieces(messages) if piece.learnt] == [
        text[begin:end] for begin, end in spans
    ]


@pytest.mark.parametrize("kind", ["bpe", "each", "words", "first", "none"])
def test_ids_of_every_family_are_those_of_transformers(kind):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    from tokenizers import Tokenizer

    formats = {name: (family.template, family.special) for name, family in FAMILIES.items()} | OWN
    for name, (template, special) in formats.items():
        ours = with_template(kind, template, special)
        said = {"bos_token": ours.conventions.bos, "eos_token": ours.conventions.eos}
        texts = {token: text for text, token in ours.special.items()}
        theirs = transformers.PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(as_hugging_face(ours).decode()), chat_template=template,
            **{key: texts[token] for key, token in said.items() if token is not None},
        )  # fmt: skip
        for talk in TALKS.values():
            messages = [Message(role, content) for role, content in talk]
            try:
                wanted, asked = (
                    theirs.apply_chat_template([m.as_json() for m in some], add_generation_prompt=prompt)["input_ids"]
                    for some, prompt in ((messages, False), (messages[:-1], True))
                )
            except Exception as error:
                assert str(error) == "no", name  # noqa: PT017
                continue
            chat = Chat(ours)
            assert chat.prompt(messages[:-1]) == asked, name
            if name != "r1" and talk is not TALKS["asked"]:
                assert chat.conversation(messages)[0] == wanted, name


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


BYHANDS = {"bytes": BYTES, "an end": bytes_and("<|endoftext|>"), "chatml": bytes_and("<|im_start|>", "<|im_end|>")}


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("name", BYHANDS)
def test_transformers_asks_an_exported_model_in_byhands_format(name, talk, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    messages = [Message(role, content) for role, content in TALKS[talk]]
    place = exported(BYHANDS[name], "hf", tmp_path).parent
    theirs = transformers.AutoTokenizer.from_pretrained(place)
    found = theirs.apply_chat_template([m.as_json() for m in messages], add_generation_prompt=True, return_dict=True)
    assert found["input_ids"] == Chat(BYHANDS[name]).prompt(messages)


@pytest.mark.parametrize("name", BYHANDS)
def test_llama_cpp_asks_an_exported_model_in_byhands_format(name, tmp_path):
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    messages = [Message(role, content) for role, content in TALKS["system"] + TALKS["asked"]]
    p = llama_cpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(exported(BYHANDS[name], "gguf", tmp_path)), 256, 1, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    asked = {"messages": [m.as_json() for m in messages], "max_tokens": 1, "temperature": 0, "verbose": True}
    said = llama_cpp.Server(p).handle_chat_completions(asked)
    said = said if isinstance(said, dict) else json.loads(said)
    chat = Chat(BYHANDS[name])
    wanted = chat.format.prompt(messages).translate(chat.format.marks.shown)
    assert said["__verbose"]["prompt"] == wanted.replace("\0", BYHANDS[name].end_text.decode())
    assert said["usage"]["prompt_tokens"] == len(chat.prompt(messages))
