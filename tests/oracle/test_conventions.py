"""transformers and llama.cpp begin and end texts as byhand does: with files of their own, and with byhand's."""

from __future__ import annotations

import json
import urllib.request

import pytest

from byhand.generation import Sampling, generate
from byhand.interop import exchange
from byhand.interop.gguf import conventions as gguf
from byhand.model import TinyGPT
from byhand.runs import checkpoint
from interop.test_conventions import through
from interop.tokenizer_cases import CASES, TEXTS, write

pytestmark = pytest.mark.oracle
PROMPTS = ("hello the", "<|im_start|>12", "a")
SEEDS, LENGTH = 2, 40


def ours(found, tokenizer, prompt, ends):
    """Return what `byhand sample` draws at temperature 0."""
    model, greedy = TinyGPT(found.config, arrays=found.arrays), Sampling(temperature=0.0)
    ids = tokenizer.prompt(prompt)
    return list(generate(model, ids, LENGTH - len(ids), greedy, stop=ends, runtime="numpy"))


@pytest.fixture
def transformers():
    found = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    found.logging.set_verbosity_error()
    found.logging.disable_progress_bar()
    return found


@pytest.mark.parametrize("name", CASES)
def test_transformers(name, tmp_path, transformers):
    """Of the same folder, of the exported one, and of one that went through a GGUF."""
    torch = pytest.importorskip("torch")
    ended = 0
    for seed in range(SEEDS):
        place = tmp_path / str(seed)
        found = exchange.read(write(name, place / "in", seed))
        run = checkpoint.load(exchange.save_as_run(found, found.tokenizer(), place / "run"))
        through(found, run.tokenizer, "hf", place / "hf")
        other = through(found, run.tokenizer, "gguf", place / "gguf")
        through(other, other.tokenizer(), "hf", place / "again")
        folders = [place / "in", place / "hf", place / "again"]
        words = [transformers.AutoTokenizer.from_pretrained(folder) for folder in folders]
        for text in TEXTS if seed == 0 else ():
            kept = words if text.isascii() or not CASES[name].nfc else words[:2]
            assert [each(text)["input_ids"] for each in kept] == [run.tokenizer.prompt(text)] * len(kept)
            bare = [each(text, add_special_tokens=False)["input_ids"] for each in kept]
            assert bare == [run.tokenizer.encode(text)] * len(kept)
            assert len({each.decode(each(text)["input_ids"], skip_special_tokens=True) for each in kept}) == 1
        for key in ("bos_token", "eos_token", "pad_token", "unk_token", "chat_template"):
            if name == "not listed" and key == "pad_token":
                continue  # transformers adds a row for it that the model lacks
            assert len({json.dumps(getattr(each, key)) for each in words}) == 1, key
        for folder, each in zip(folders, words, strict=True):
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
            for prompt in PROMPTS:
                given = each(prompt, return_tensors="pt", return_token_type_ids=False)
                size = given["input_ids"].shape[1]
                theirs = model.generate(**given, max_length=LENGTH, do_sample=False)[0, size:].tolist()
                due = ours(found, run.tokenizer, prompt, run.ends)
                ends = theirs[-1:] if theirs[-1] in run.ends else []
                assert theirs == due + ends
                ended += bool(ends)
    assert ended or not run.ends


@pytest.mark.parametrize("name", CASES)
def test_llama_cpp(name, tmp_path, monkeypatch):
    """Of the exported file, read as if another program had written it."""
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    ended = 0
    for seed in range(SEEDS):
        place = tmp_path / str(seed)
        found = exchange.read(write(name, place / "in", seed))
        first = found.tokenizer()
        with monkeypatch.context() as patch:
            patch.setattr(gguf, "ENDS", "byhand.unread")
            exported = through(found, first, "gguf", place / "out")
        run = checkpoint.load(exchange.save_as_run(exported, exported.tokenizer(), place / "run"))
        assert set(first.conventions.ends) <= run.ends
        ends = run.ends or run.tokenizer.encode(b"\0")  # llama.cpp is told an end in any case
        p = llama_cpp.CommonParams()
        p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(place / "out" / "model.gguf"), 64, 1, False
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
        p.cache_type_k = p.cache_type_v = llama_cpp.ggml_type.GGML_TYPE_F32
        p.flash_attn_type = llama_cpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        server = llama_cpp.Server(p)

        def ask(what, server=server, **asked):
            request = urllib.request.Request(
                f"{server.listening_address}/{what}", json.dumps(asked).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)

        for text in TEXTS if seed == 0 else ():
            if text.isascii() or not CASES[name].nfc:
                said = ask("tokenize", content=text, add_special=True, parse_special=True)["tokens"]
                assert said == run.tokenizer.prompt(text), text
        for prompt in PROMPTS:
            size = len(run.tokenizer.prompt(prompt))
            theirs = ask("completion", prompt=prompt, n_predict=LENGTH - size, temperature=0, return_tokens=True)
            due = ours(exported, run.tokenizer, prompt, ends)
            assert theirs["tokens_evaluated"] == size
            same = theirs["tokens"][: len(due)]
            assert same == due or CASES[name].kind == "gpt2"  # reads GELU from a table, which may turn a near tie
            assert theirs["stop_type"] == ("limit" if len(due) == LENGTH - size else "eos")
            ended += theirs["stop_type"] == "eos"
    assert ended or not first.conventions.ends


def test_the_template_of_a_file_is_what_llama_cpp_reads(tmp_path):
    package = pytest.importorskip("gguf", reason="gguf is not installed, so its reader is not asked")
    for name in ("llama 3 instruct", "several templates", "nothing"):
        found = exchange.read(write(name, tmp_path / name / "in"))
        through(found, found.tokenizer(), "gguf", tmp_path / name / "out")
        fields = package.GGUFReader(tmp_path / name / "out" / "model.gguf").fields
        due = CASES[name].due.get("templates", {})
        keys = package.Keys.Tokenizer
        said = {"default": fields[keys.CHAT_TEMPLATE].contents()} if keys.CHAT_TEMPLATE in fields else {}
        named = fields[keys.CHAT_TEMPLATES].contents() if keys.CHAT_TEMPLATES in fields else []
        said |= {each: fields[keys.CHAT_TEMPLATE_N.format(name=each)].contents() for each in named}
        assert said == due
