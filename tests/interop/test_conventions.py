"""Which tokens begin and end a text, what is added to it, and chat templates: through every way in and out."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from byhand.config import TrainConfig
from byhand.errors import ByhandError, ConfigError, DataError
from byhand.interop import exchange
from byhand.interop.gguf import conventions as gguf
from byhand.interop.hugging_face.tokens import known, of_folder
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.conventions import ONE, Conventions
from byhand.tokenizers.hugging_face import as_hugging_face, of_hugging_face
from byhand.tokenizers.registry import restored, stored
from byhand.tokenizers.sentencepiece_files import BYTES as BYTE
from byhand.tokenizers.sentencepiece_files import VocabularyPiece, of_pieces
from interop.tokenizer_cases import CASES, TEXTS, ids, template, tokenizer_json, write

LLAMA = "llama 3 instruct"
WAY = ("hf", "gguf", "gguf", "hf")  # from a folder: every way that there is


def due(name: str) -> Conventions:
    case, table = CASES[name], ids(CASES[name])

    def of(value):
        return table[value] if isinstance(value, str) else tuple(table[text] for text in value)

    return Conventions(**{k: value if k == "templates" else of(value) for k, value in case.due.items()})


def through(found, tokenizer, goal, place):
    """Return what comes back of a model and its tokenizer that went to this goal."""
    run = Checkpoint(TrainConfig(model=found.config), found.arrays, {}, {"step": 0, "text": {}}, tokenizer=tokenizer)
    exchange.write(run, goal, place)
    return exchange.read(place)


@pytest.mark.parametrize("name", CASES)
def test_a_folder_says_how_its_tokens_are_used(name, tmp_path):
    found = exchange.read(write(name, tmp_path)).tokenizer()
    assert found.conventions == due(name)
    assert restored(stored(found)).conventions == found.conventions
    assert (found is BYTES) == (name == "bytes")


@pytest.mark.parametrize("name", CASES)
def test_it_stays_so_on_every_way(name, tmp_path):
    """llama.cpp composes no characters, and has names for two ends besides EOS: the second is that of a turn."""
    found = exchange.read(write(name, tmp_path / "in"))
    first = found.tokenizer()
    tokenizer = checkpoint.load(exchange.save_as_run(found, first, tmp_path / "run")).tokenizer
    texts = [text for text in TEXTS if text.isascii()] if CASES[name].nfc else TEXTS
    for step, goal in enumerate(WAY):
        found = through(found, tokenizer, goal, tmp_path / str(step))
        tokenizer = found.tokenizer()
        eot = tokenizer.conventions.eot
        assert replace(tokenizer.conventions, eot=None) == first.conventions
        assert eot is None or (name, goal) == ("several ends", "gguf")
        assert [tokenizer.prompt(text) for text in texts] == [first.prompt(text) for text in texts]


@pytest.mark.parametrize("name", CASES)
def test_a_folder_is_the_same_after_another_way_round(name, tmp_path):
    found = exchange.read(write(name, tmp_path / "in"))
    written = []
    for step in ("once", "twice"):
        found = through(found, found.tokenizer(), "hf", tmp_path / step)
        files = sorted(path for path in (tmp_path / step).iterdir() if path.suffix == ".json")
        written.append({path.name: path.read_text(encoding="utf-8") for path in files})
    assert all(one == other for one, other in pairwise(written))
    assert {"tokenizer.json", "tokenizer_config.json", "generation_config.json"} <= written[0].keys()


def test_ends_of_a_file_of_another_writer_are_those_of_llama_cpp(tmp_path, monkeypatch):
    name, table = "qwen2", ids(CASES["qwen2"])
    found = exchange.read(write(name, tmp_path / "in"))
    words = found.tokenizer().using(Conventions(eos=table["<|endoftext|>"]))
    assert through(found, words, "gguf", tmp_path / "out").tokenizer().conventions.ends == ()
    monkeypatch.setattr(gguf, "ENDS", "unread")
    ends = exchange.read(tmp_path / "out").tokenizer().conventions.ends
    assert ends == (table["<|endoftext|>"], table["<|im_end|>"])


def test_what_llama_cpp_cannot_add_is_refused(tmp_path):
    found = exchange.read(write(LLAMA, tmp_path / "in"))
    words = found.tokenizer()
    bos, eos = words.conventions.bos, words.conventions.eos
    for wrong in ({"before": (bos, eos)}, {"before": (eos,)}, {"after": (bos,)}):
        other = words.using(Conventions(**{"bos": bos, "eos": eos, **wrong}))
        with pytest.raises(ConfigError, match=r"llama.cpp adds at most the (BOS|EOS) token .* Use --to hf"):
            through(found, other, "gguf", tmp_path / "out")
        assert through(found, other, "hf", tmp_path / f"{wrong}").tokenizer().conventions == (
            Conventions(bos=bos, eos=eos, ends=(eos,), **wrong)
        )


@pytest.mark.parametrize(
    "post",
    [
        {"type": "Magic"}, {"type": "TemplateProcessing"}, [], 3, {"type": "Sequence", "processors": [1]},
        {"type": "Sequence", "processors": [{"type": "ByteLevel"}] * 17}, {"type": "BertProcessing", "cls": []},
        {**template(), "single": [{"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}},
        {**template(), "single": [], "special_tokens": {}},
        {**template(), "single": [{"SpecialToken": {"id": "<s>"}}], "special_tokens": {"<s>": {"ids": [[1]]}}},
        {"type": "BertProcessing", "cls": ["x", 10**6], "sep": ["x", 263]},
        {"type": "RobertaProcessing", "cls": ["x", "1"], "sep": ["x", 1]},
    ],
)  # fmt: skip
def test_another_post_processor_is_refused(post):
    values = tokenizer_json(CASES["gpt2"])
    with pytest.raises(DataError, match=r"its post_processor is|its conventions name the token 1000000"):
        of_hugging_face({**values, "post_processor": post})


def test_processors_around_processors():
    values, table = tokenizer_json(CASES["flags beside a template"]), ids(CASES["flags beside a template"])
    bos, eos = table["<s>"], table["</s>"]
    inner = {"type": "RobertaProcessing", "cls": ["<s>", bos], "sep": ["</s>", eos]}
    found = of_hugging_face({**values, "post_processor": {"type": "Sequence", "processors": [inner, inner]}})
    assert (found.conventions.before, found.conventions.after) == ((bos, bos), (eos, eos))
    assert of_hugging_face(json.loads(as_hugging_face(found))).conventions == found.conventions


@pytest.mark.parametrize(
    "wrong",
    [
        {"bos": "<s>"}, {"bos": True}, {"bos": 10**6}, {"bos": -1}, {"ends": 3}, {"ends": [[3]]}, {"more": 1}, [], 5,
        {"ends": [3] * 65}, {"before": [3] * 17}, {"ends": [3, 3]}, {"before": [3]}, {"shown": [3]},
        {"templates": []},
        {"templates": {"a": 1}}, {"templates": {"": "a"}}, {"templates": {"\n": "a"}}, {"templates": {"a": "\ud800"}},
        {"templates": {"a": "x" * (1 << 20), "b": "x"}}, {"templates": dict.fromkeys(map(str, range(33)), "")},
    ],
)  # fmt: skip
def test_conventions_that_are_none_are_refused(wrong):
    values = json.loads(
        known(of_hugging_face(tokenizer_json(CASES["flags beside a template"]))).using(Conventions(bos=3)).content
    )
    content = json.dumps(values | {"conventions": wrong}, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(DataError) as error:
        restored(content)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer_config.json", "{", "is not JSON"),
        ("tokenizer_config.json", "[]", "is not JSON: no table"),
        ("tokenizer_config.json", '{"bos_token": 3}', "its bos_token in tokenizer_config.json is not a string"),
        ("tokenizer_config.json", '{"additional_special_tokens": 3}', "its additional_special_tokens in"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"1": {"content": "x", "rstrip": true}}}', "uses rstrip"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"1": "x"}}', "its added_tokens_decoder in"),
        ("tokenizer_config.json", '{"chat_template": 3}', "the chat_template in"),
        ("tokenizer_config.json", '{"chat_template": [{"name": "a"}]}', "the chat_template in"),
        ("tokenizer_config.json", '{"chat_template": {"a": 3}}', "its chat template 'a' is not a string"),
        ("generation_config.json", "nonsense", "is not JSON"),
        ("chat_template.jinja", "\udcff", "is not UTF-8"),
    ],
)
def test_a_damaged_file_is_named(file, content, words, tmp_path):
    write("nothing", tmp_path)
    (tmp_path / file).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ByhandError) as error:
        of_folder(tmp_path)
    assert words in str(error.value)
    assert str(error.value).isprintable()


def test_special_tokens_without_a_name_are_special_too(tmp_path):
    write("nothing", tmp_path)
    listed = {
        "additional_special_tokens": ["a"],
        "extra_special_tokens": {"b_token": "b", "lacking": "of no vocabulary"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(listed))
    found = of_folder(tmp_path)
    assert found is not None
    assert {"a", "b"} <= found.special.keys()


def test_the_same_ids_have_the_same_digest():
    words = of_hugging_face(tokenizer_json(CASES["flags beside a template"]))
    plain = words.using(Conventions())
    assert plain.ids_digest == plain.digest == words.ids_digest != words.digest
    assert words.using(Conventions(bos=3)).ids_digest == plain.digest
    assert all(getattr(plain.conventions, name) is None for name in ONE)


def test_llama_cpp_adds_bos_to_llama_3s_words_unless_a_key_says_otherwise():
    """Also one that the file lists as an ordinary token; of a byte, or where no BOS is named, nothing is added."""
    words = known(of_hugging_face(tokenizer_json(CASES["not listed"])).using(Conventions()))
    bos, named = ids(CASES["not listed"])["<s>"], gguf.NAMED["bos"]
    for keys, begins, before in (
        ({named: bos}, True, (bos,)),
        ({named: bos}, False, ()),
        ({named: bos, gguf.ADDED["before"][0]: False}, True, ()),
        ({named: bos, gguf.ADDED["before"][0]: True}, False, (bos,)),
        ({named: 0}, True, ()),
        ({}, True, ()),
    ):
        plain = BytePairTokenizer({**words.vocabulary, **words.special}, words.merges)
        found = gguf.with_conventions(plain, keys, (), begins)
        assert found.conventions.before == before
        assert found.encode("<s>") == [bos] or not before


@pytest.mark.parametrize("pieces", [False, True])
def test_a_padding_token_that_a_model_has_no_row_for_is_left_out(pieces, caplog):
    tokenizer = of_hugging_face(tokenizer_json(CASES["gpt2"]))
    if pieces:
        tokenizer = of_pieces(
            [*(VocabularyPiece(f"<0x{i:02X}>", 0.0, BYTE) for i in range(256)), VocabularyPiece("a", 0.0)]
        )
    size = tokenizer.vocab_size
    values = tokenizer.as_json()
    values["special"] = {**values.get("special", {}), "<pad>": size}
    if pieces:
        values["late"] = [*values.get("late", []), "<pad>"]
    longer = type(tokenizer).from_json(values)
    found = exchange.within(longer.using(replace(tokenizer.conventions, pad=size, shown=(size,))), size)
    assert found.content == tokenizer.content
    assert "left out <pad>: the model has only" in caplog.text
    assert exchange.within(longer, size + 1) is longer
    for used in (Conventions(ends=(size,)), Conventions(before=(size,)), Conventions(templates={"default": "<pad>"})):
        with pytest.raises(DataError, match="the tokenizer uses '<pad>', but the model has only"):
            exchange.within(longer.using(used), size)


@pytest.mark.parametrize(
    ("said", "due", "left_out"),
    [
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, {"temperature": 0.6, "top_p": 0.9}, ""),
        ({"temperature": 0.2, "top_k": 0, "top_p": 1.0, "min_p": 0.05}, {"temperature": 0.2, "min_p": 0.05}, ""),
        ({"do_sample": True, "top_k": 64}, {"temperature": 1.0, "top_k": 64}, ""),
        ({"do_sample": False, "temperature": 0.6, "repetition_penalty": 1.1}, {"repetition_penalty": 1.1}, ""),
        ({"num_beams": 4, "typical_p": 0.9, "top_h": None, "min_length": 0}, {}, "no num_beams, typical_p"),
        ({"temperature": -1, "top_k": 2.5, "top_p": "x", "min_p": True}, {}, "min_p cannot be True"),
        ({"do_sample": True, "top_k": 1 << 40}, {"temperature": 1.0}, "top_k cannot be 1099511627776"),
        ({}, {}, ""),
    ],
)
def test_how_its_makers_sample_is_read_and_written(said, due, left_out, tmp_path, caplog):
    """In transformers do_sample alone has temperature 1; a value that changes nothing is none."""
    write("qwen2", tmp_path / "in")
    path = tmp_path / "in/generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | said) if path.exists() else json.dumps(said))
    found = exchange.read(tmp_path / "in")
    tokenizer = found.tokenizer()
    assert tokenizer.conventions.sampling == due
    assert (left_out or "left out") in caplog.text or not left_out
    assert bool(caplog.text) == bool(left_out)
    assert restored(stored(tokenizer)).conventions == tokenizer.conventions
    for goal in ("hf", "gguf"):
        assert through(found, tokenizer, goal, tmp_path / goal).tokenizer().conventions.sampling == due
    written = json.loads((tmp_path / "hf/generation_config.json").read_bytes())
    assert written["do_sample"] == bool(due.keys() - {"repetition_penalty"})
