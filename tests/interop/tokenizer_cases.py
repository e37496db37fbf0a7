"""Folders of small random models with the tokenizers that people have, written from the formats' descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from byhand.tokenizers.splitting import SPLITS
from byhand.tokenizers.symbols import visible_bytes
from interop import foreign_cases as foreign

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "t"), ("Ġt", "he"), ("1", "2")]
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TURNS = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}é"
TOOLS = "{# tools #}{{ tools }}"
FAST = "PreTrainedTokenizerFast"
END = "<|endoftext|>"
ENDS = ("<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>", "<pad>")


def template(before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> dict[str, Any]:
    """A post-processor; its part for pairs has other tokens than that for one text."""
    one = [{"SpecialToken": {"id": text, "type_id": 0}} for text in before]
    one += [{"Sequence": {"id": "A", "type_id": 0}}, *({"SpecialToken": {"id": t, "type_id": 0}} for t in after)]
    pair = [*one, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": one, "pair": pair, "special_tokens": {*before, *after}}


@dataclass(frozen=True)
class Case:
    """A folder, but for its model.

    special   texts of the added tokens; of those in `shown` the flag `special` is false
    settings  of tokenizer_config.json, None: there is no such file
    ends      texts of the tokens that generation_config.json names
    due       its conventions, as texts: bos, eos, ends, before, after
    unlisted  named tokens that are not added tokens
    apart     vocab.json and merges.txt in place of tokenizer.json
    files     others, by name
    """

    special: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    due: Mapping[str, Any] = field(default_factory=dict)
    split: str = "gpt2"
    kind: str = "llama"
    post: Mapping[str, Any] | None = None
    ends: tuple[str, ...] = ()
    merges: tuple[tuple[str, str], ...] = tuple(MERGES)
    whole: bool = False
    nfc: bool = False
    shown: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    apart: bool = False
    files: Mapping[str, str] = field(default_factory=dict)


BEGIN = {"type": "Sequence", "processors": [LEVEL, template((ENDS[0],))]}
CASES = {
    "gpt2": Case((END,), kind="gpt2", post=LEVEL, due={"bos": END, "eos": END, "unk": END, "ends": (END,)}),
    "llama 3": Case(
        ENDS[:2], {"tokenizer_class": FAST, "bos_token": ENDS[0], "eos_token": ENDS[1]},
        {"bos": ENDS[0], "eos": ENDS[1], "ends": (ENDS[1],), "before": (ENDS[0],)},
        split="gpt4", whole=True, post=BEGIN,
    ),
    "llama 3 instruct": Case(
        ENDS,
        {"tokenizer_class": FAST, "bos_token": ENDS[0], "eos_token": ENDS[3], "pad_token": "<pad>",
         "chat_template": TURNS},
        {"bos": ENDS[0], "eos": ENDS[3], "pad": "<pad>", "ends": ENDS[1:4], "before": (ENDS[0],),
         "templates": {"default": TURNS}},
        split="gpt4", whole=True, post=BEGIN, ends=ENDS[1:4],
    ),
    "qwen2": Case(
        (END, "<|im_start|>", "<|im_end|>", "<think>"),
        {"tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "eos_token": "<|im_end|>", "pad_token": END,
         "unk_token": None, "add_bos_token": False, "chat_template": TURNS},
        {"eos": "<|im_end|>", "pad": END, "ends": ("<|im_end|>", END), "shown": ("<think>",),
         "templates": {"default": TURNS}},
        split="qwen2", kind="qwen2", nfc=True, post=LEVEL, ends=("<|im_end|>", END), shown=("<think>",),
    ),
    "smollm": Case(
        (END, "<|im_start|>", "<|im_end|>"),
        {"tokenizer_class": "TokenizersBackend", "bos_token": "<|im_start|>", "eos_token": "<|im_end|>",
         "unk_token": END, "pad_token": "<|im_end|>"},
        {"bos": "<|im_start|>", "eos": "<|im_end|>", "unk": END, "pad": "<|im_end|>", "ends": ("<|im_end|>",),
         "templates": {"default": TURNS}},
        split="smollm", files={"chat_template.jinja": TURNS},
    ),
    "end added": Case(
        (END,), {"tokenizer_class": FAST, "eos_token": END}, {"eos": END, "ends": (END,), "after": (END,)},
        post=template((), (END,)),
    ),
    "flags beside a template": Case(
        ("<s>", "</s>"),
        {"tokenizer_class": "LlamaTokenizerFast", "bos_token": {"__type": "AddedToken", "content": "<s>"},
         "eos_token": "</s>", "add_bos_token": True, "add_eos_token": False},
        {"bos": "<s>", "eos": "</s>", "ends": ("</s>",), "after": ("</s>",)}, post=template((), ("</s>",)),
    ),
    "vocab.json": Case(
        (END,), {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True},
        {"bos": END, "eos": END, "unk": END, "ends": (END,), "before": (END,)}, kind="gpt2", apart=True,
    ),
    "bytes": Case(merges=()),
    "several ends": Case(
        ("<a>", "<b>", "<c>", "<d>"), {"tokenizer_class": FAST, "bos_token": "<a>", "eos_token": "<d>"},
        {"bos": "<a>", "eos": "<d>", "ends": ("<b>", "<c>", "<d>"), "before": ("<a>",)},
        post=template(("<a>",)), ends=("<b>", "<c>", "<d>"),
    ),
    "several templates": Case(
        ("<s>", "</s>"),
        {"tokenizer_class": FAST, "bos_token": "<s>", "eos_token": "</s>",
         "chat_template": [{"name": "default", "template": TURNS}, {"name": "tool_use", "template": TOOLS}]},
        {"bos": "<s>", "eos": "</s>", "ends": ("</s>",), "templates": {"default": TURNS, "tool_use": TOOLS}},
    ),
    "files of templates": Case(
        ("<s>", "</s>"), {"tokenizer_class": FAST, "chat_template": "not this one"},
        {"bos": "<s>", "eos": "</s>", "ends": ("</s>",), "templates": {"default": TURNS, "rag": TOOLS}},
        files={"chat_template.jinja": TURNS, "additional_chat_templates/rag.jinja": TOOLS,
               "special_tokens_map.json": json.dumps({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})},
    ),
    "not listed": Case(
        (), {"tokenizer_class": FAST, "bos_token": "<s>", "eos_token": "</s>", "pad_token": "[NOT THERE]"},
        {"bos": "<s>", "eos": "</s>", "ends": ("</s>",), "before": ("<s>",)},
        unlisted=("<s>", "</s>"), post=template(("<s>",)),
    ),
    "nothing": Case((), {"tokenizer_class": FAST}),
}  # fmt: skip
TEXTS = ("", "hello the 12345 hello", "naïve e\u0301 中文 🙂\n\n  x", "a<|im_end|>b</s> <think><|endoftext|>")


def ids(case: Case) -> dict[str, int]:
    """Return the ids of all tokens."""
    symbols = [*visible_bytes(), *map("".join, case.merges), *case.unlisted, *case.special]
    return {symbol: token for token, symbol in enumerate(symbols)}


def tokenizer_json(case: Case) -> dict[str, Any]:
    table = ids(case)
    before = {
        "gpt2": [],
        "smollm": [{"type": "Digits", "individual_digits": True}],
    }.get(case.split)
    if before is None:
        pattern = {"Regex": SPLITS[case.split].regex[0]}
        before = [{"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}]
    last = {**LEVEL, "use_regex": case.split in ("gpt2", "smollm")}
    post = json.loads(json.dumps(case.post, default=sorted))
    for step in [] if post is None else post.get("processors", [post]):
        if "special_tokens" in step:
            step["special_tokens"] = {t: {"id": t, "ids": [table[t]], "tokens": [t]} for t in step["special_tokens"]}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": table[t], "content": t, **flags, "special": t not in case.shown} for t in case.special
        ],
        "normalizer": {"type": "NFC"} if case.nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*before, last]} if before else last,
        "post_processor": post, "decoder": LEVEL,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": case.whole,
            "vocab": {t: i for t, i in table.items() if t not in case.special},
            "merges": list(map(list, case.merges)),
        },
    }  # fmt: skip


def write(name: str, place: Path, seed: int = 0) -> Path:
    """Write a case's folder; its model often says a special token."""
    case, table = CASES[name], ids(CASES[name])
    ends = [table[text] for text in case.ends] or table.get(case.due.get("eos", ""))
    config = foreign.settings(case.kind, 1) | {
        "vocab_size": len(table), "bos_token_id": table.get(case.due.get("bos", "")), "eos_token_id": ends,
        "tie_word_embeddings": False,
    }  # fmt: skip
    config["n_positions" if case.kind == "gpt2" else "max_position_embeddings"] = 64
    if case.kind == "gpt2":
        config["activation_function"] = "gelu_new"
    if "head_dim" in config:
        config["num_attention_heads"], config["hidden_size"] = 2, 2 * config["head_dim"]
        config["num_key_value_heads"] = 1
    arrays = foreign.drawn(foreign.shapes(config), seed)
    for text in (*case.special, *case.unlisted):
        arrays["lm_head.weight"][table[text]] *= 3
    foreign.write_folder(place, config, arrays)
    merges = "".join(f"{left} {right}\n" for left, right in case.merges)
    whole = {"tokenizer.json": json.dumps(tokenizer_json(case))}
    files = dict(case.files) | ({"vocab.json": json.dumps(table), "merges.txt": merges} if case.apart else whole)
    if case.settings is not None:
        files["tokenizer_config.json"] = json.dumps(case.settings)
    if case.ends:
        files["generation_config.json"] = json.dumps({"eos_token_id": ends})
    for file, content in files.items():
        (place / file).parent.mkdir(exist_ok=True)
        (place / file).write_text(content, encoding="utf-8")
    return place
