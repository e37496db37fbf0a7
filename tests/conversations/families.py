"""The conversation formats of public model families, a line each, and Jinja for them.

A family that only puts texts around messages needs these texts; the others have a template of ours.
"""

from __future__ import annotations

from typing import NamedTuple

from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.sentencepiece_files import of_model
from sentencepiece_cases import tokenizer_model
from toy_tokenizers import byte_pairs


class Family(NamedTuple):
    """`{}` is what is said; "" a role that the family does not have.

    special  tokens, separated by spaces, the one that ends an answer first
    ask      what a prompt ends with, and what stands before an answer
    answer   what is said with what ends it, which is learnt
    rest     what follows
    """

    special: str
    system: str
    user: str
    ask: str
    answer: str
    rest: str = ""
    bos: str = ""

    @property
    def template(self) -> str:
        """Jinja that writes this."""
        turns = (self.system, self.user, self.ask + self.answer + self.rest)
        system, user, answer = (
            "{{{{ {!r} + m.content + {!r} }}}}".format(*turn.split("{}")) if turn else "{{ raise_exception('no') }}"
            for turn in turns
        )
        return (
            f"{{{{ {self.bos!r} }}}}{{% for m in messages %}}{{% if m.role == 'system' %}}{system}"
            f"{{% elif m.role == 'user' %}}{user}{{% else %}}{answer}{{% endif %}}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{{{{ {self.ask!r} }}}}{{% endif %}}"
        )

    def written(self, talk: list[tuple[str, str]]) -> tuple[str, list[str]]:
        """Return the text of a conversation and what is learnt of it."""
        turns = {"system": self.system, "user": self.user, "assistant": self.ask + self.answer + self.rest}
        text = self.bos + "".join(turns[role].replace("{}", said) for role, said in talk)
        return text, [self.answer.replace("{}", said) for role, said in talk if role == "assistant"]


_IM, _END = "<|im_start|>", "<|im_end|>"
_GRANITE, _SEP = "<|start_of_role|>{}<|end_of_role|>", "<｜{}｜>"
FAMILIES = {
    "chatml": Family("<|im_end|> <|im_start|>", f"{_IM}system\n{{}}{_END}\n", f"{_IM}user\n{{}}{_END}\n",
                     f"{_IM}assistant\n", f"{{}}{_END}", "\n"),
    "phi 4": Family("<|im_end|> <|im_start|> <|im_sep|>", f"{_IM}system<|im_sep|>{{}}{_END}",
                    f"{_IM}user<|im_sep|>{{}}{_END}", f"{_IM}assistant<|im_sep|>", f"{{}}{_END}"),
    "llama 3": Family("<|eot_id|> <|begin_of_text|> <|start_header_id|> <|end_header_id|>",
                      "<|start_header_id|>system<|end_header_id|>\n\n{}<|eot_id|>",
                      "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>",
                      "<|start_header_id|>assistant<|end_header_id|>\n\n", "{}<|eot_id|>", bos="<|begin_of_text|>"),
    "llama 4": Family("<|eot|> <|header_start|> <|header_end|>", "<|header_start|>system<|header_end|>\n\n{}<|eot|>",
                      "<|header_start|>user<|header_end|>\n\n{}<|eot|>",
                      "<|header_start|>assistant<|header_end|>\n\n", "{}<|eot|>"),
    "mistral 1": Family("</s> <s>", "", " [INST] {} [/INST]", "", " {}</s>", bos="<s>"),
    "mistral 3": Family("</s> <s> [INST] [/INST]", "", "[INST] {}[/INST]", "", " {}</s>", bos="<s>"),
    "mistral 7": Family("</s> <s> [INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]",
                        "[SYSTEM_PROMPT] {}[/SYSTEM_PROMPT]", "[INST] {}[/INST]", "", " {}</s>", bos="<s>"),
    "tekken": Family("</s> <s> [INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]",
                     "[SYSTEM_PROMPT]{}[/SYSTEM_PROMPT]", "[INST]{}[/INST]", "", "{}</s>", bos="<s>"),
    "gemma": Family("<end_of_turn> <start_of_turn> <bos>", "", "<start_of_turn>user\n{}<end_of_turn>\n",
                    "<start_of_turn>model\n", "{}<end_of_turn>", "\n", "<bos>"),
    "zephyr": Family("</s>", "<|system|>\n{}</s>\n", "<|user|>\n{}</s>\n", "<|assistant|>\n", "{}</s>", "\n"),
    "vicuna": Family("</s>", "{}\n\n", "USER: {}\n", "ASSISTANT: ", "{}</s>", "\n"),
    "deepseek 2": Family("<｜end▁of▁sentence｜> <｜begin▁of▁sentence｜>", "{}\n\n", "User: {}\n\n", "Assistant:",
                         " {}<｜end▁of▁sentence｜>", bos="<｜begin▁of▁sentence｜>"),
    "deepseek 3": Family("<｜end▁of▁sentence｜> <｜begin▁of▁sentence｜> <｜User｜> <｜Assistant｜>", "{}\n\n",
                         "<｜User｜>{}", "<｜Assistant｜>", "{}<｜end▁of▁sentence｜>", bos="<｜begin▁of▁sentence｜>"),
    "command r": Family("<|END_OF_TURN_TOKEN|> <|START_OF_TURN_TOKEN|> <|USER_TOKEN|> <|CHATBOT_TOKEN|>", "",
                        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{}<|END_OF_TURN_TOKEN|>",
                        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "{}<|END_OF_TURN_TOKEN|>"),
    "glm 4": Family("<|user|> [gMASK] <sop> <|system|> <|assistant|>", "<|system|>\n{}", "<|user|>\n{}",
                    "<|assistant|>\n", "{}", bos="[gMASK]<sop>"),
    "minicpm": Family("</s> <s> <用户> <AI>", "{}", "<用户>{}", "<AI>", "{}"),
    "granite": Family("<|end_of_text|> <|start_of_role|> <|end_of_role|>",
                      f"{_GRANITE.format('system')}{{}}<|end_of_text|>\n",
                      f"{_GRANITE.format('user')}{{}}<|end_of_text|>\n",
                      _GRANITE.format("assistant"), "{}<|end_of_text|>", "\n"),
    "gigachat": Family("<|message_sep|> <s> <|role_sep|>", "{}<|message_sep|>",
                       "user<|role_sep|>{}<|message_sep|>", "assistant<|role_sep|>", "{}<|message_sep|>", bos="<s>"),
    "falcon 3": Family("<|endoftext|>", "<|system|>\n{}\n", "<|user|>\n{}\n", "<|assistant|>\n", "{}<|endoftext|>",
                       "\n"),
    "falcon": Family("<|endoftext|>", "{}\n", "User: {}\n", "Assistant:", " {}\n"),
    "monarch": Family("</s> <s>", "<s>system\n{}</s>\n", "<s>user\n{}</s>\n", "<s>assistant\n", "{}</s>", "\n"),
    "orion": Family("</s> <s>", "", "Human: {}\n\n", "Assistant: </s>", "{}</s>", bos="<s>"),
    "openchat": Family("<|end_of_turn|> <s>", "", "GPT4 Correct User: {}<|end_of_turn|>",
                       "GPT4 Correct Assistant:", " {}<|end_of_turn|>", bos="<s>"),
    "exaone": Family("[|endofturn|] [|system|] [|user|] [|assistant|]", "[|system|]{}[|endofturn|]\n",
                     "[|user|]{}\n", "[|assistant|]", "{}[|endofturn|]", "\n"),
    "rwkv": Family("<|endoftext|>", "System: {}\n\n", "User: {}\n\n", "Assistant:", " {}\n\n"),
    "bailing": Family("<|endoftext|>", "<role>SYSTEM</role>{}", "<role>HUMAN</role>{}", "<role>ASSISTANT</role>",
                      "{}"),
    "megrez": Family("<|turn_end|> <|role_start|> <|role_end|>", "<|role_start|>system<|role_end|>{}<|turn_end|>",
                     "<|role_start|>user<|role_end|>{}<|turn_end|>", "<|role_start|>assistant<|role_end|>",
                     "{}<|turn_end|>"),
    "seed": Family("<seed:eos> <seed:bos>", "<seed:bos>system\n{}<seed:eos>", "<seed:bos>user\n{}<seed:eos>",
                   "<seed:bos>assistant\n", "{}<seed:eos>"),
    "kimi": Family("<|im_end|> <|im_system|> <|im_user|> <|im_assistant|> <|im_middle|>",
                   "<|im_system|>system<|im_middle|>{}<|im_end|>", "<|im_user|>user<|im_middle|>{}<|im_end|>",
                   "<|im_assistant|>assistant<|im_middle|>", "{}<|im_end|>"),
    "grok": Family("<|separator|>", "System: {}<|separator|>\n\n", "Human: {}<|separator|>\n\n", "Assistant:",
                   " {}<|separator|>", "\n\n"),
    "solar": Family("</s>", "### System:\n{}\n\n", "### User:\n{}\n\n", "### Assistant:\n", "{}</s>", "\n\n"),
}  # fmt: skip

QWEN3 = """{% set ns = namespace(last=0) %}{% for m in messages if m.role == 'user' %}{% set ns.last = loop.index0 %}
{%- endfor %}{% set asked = namespace(at=-1) %}{% for m in messages %}{% if m.role == 'user' %}
{%- set asked.at = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}{% set text, thought = m.content, '' %}
{%- if m.role == 'assistant' %}{% if m.reasoning_content %}{% set thought = m.reasoning_content %}
{%- elif '</think>' in text %}{% set thought = text.split('</think>')[0].split('<think>')[-1].strip('\\n') %}
{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}{% endif %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and loop.index0 > asked.at %}
{{- '<think>\\n' + thought + '\\n</think>\\n\\n' }}{% endif %}
{{- text + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
R1 = """{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '<|User|>' + m.content }}{% else %}
{%- set text = m.content.split('</think>')[-1] if '</think>' in m.content else m.content %}
{{- '<|Assistant|>' + text + eos_token }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{% endif %}"""
PHI3 = """{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""
GPT_OSS = """{% for m in messages %}{% if m.role == 'assistant' %}{% if m.thinking and loop.last %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}
{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + ('<|return|>' if loop.last else '<|end|>') }}
{%- else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"""
MISTRAL_LAST = """{{ bos_token }}{% if messages[0].role == 'system' %}{% set said = messages[0].content + '\\n\\n' %}
{%- set rest = messages[1:] %}{% else %}{% set said = '' %}{% set rest = messages %}{% endif %}
{%- set last = (rest | selectattr('role', 'equalto', 'user') | list)[-1] %}
{%- for m in rest %}{% if m.role == 'user' %}
{{- '[INST] ' + (said if m == last else '') + m.content + '[/INST]' }}{% else %}{{ ' ' + m.content + eos_token }}
{%- endif %}{% endfor %}"""
LLAMA2 = """{% set said, rest = '', messages %}{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}
{%- set said = '<<SYS>>\\n' + messages[0].content + '\\n<</SYS>>\\n\\n' %}{% endif %}
{%- for m in rest %}{% if m.role == 'user' %}
{{- bos_token + '[INST] ' + (said if loop.first else '') + m.content.strip() + ' [/INST]' }}
{%- else %}{{ ' ' + m.content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
OWN = {  # the template, its special tokens
    "qwen 3": (QWEN3, "<|im_end|> <|im_start|> <think> </think>"),
    "r1": (R1, "</s> <s> <|User|> <|Assistant|> <think> </think>"),
    "phi 3": (PHI3, "<|endoftext|> <|end|> <|user|> <|assistant|> <|system|>"),
    "gpt-oss": (GPT_OSS, "<|return|> <|start|> <|end|> <|message|> <|channel|>"),
    "mistral, system last": (MISTRAL_LAST, "</s> <s> [INST] [/INST]"),
    "llama 2": (LLAMA2, "</s> <s>"),
}


def with_template(kind: str, template: str, special: str) -> BytePairTokenizer | SentencePieceTokenizer:
    """Return a small tokenizer, "bpe" or the prefix of "sentencepiece", with these tokens and this template."""
    texts = special.split()
    if kind == "bpe":
        base = byte_pairs()
        free = [text for text in texts if text not in base.vocabulary]
        ids = {text: base.vocab_size + i for i, text in enumerate(free)}
        ids |= {text: base.vocabulary[text] for text in texts if text in base.vocabulary}
        vocabulary = {symbol: token for symbol, token in base.vocabulary.items() if symbol not in ids}
        found = BytePairTokenizer(vocabulary, base.merges, special=ids)
    else:
        known = of_model(tokenizer_model())
        new = [text for text in texts if text not in known.special]
        ids = {**known.special, **{text: known.vocab_size + i for i, text in enumerate(new)}}
        found = SentencePieceTokenizer(known.vocabulary, ranks=known.ranks, special=ids, prefix=kind)
    bos = next((ids[text] for text in ("<s>", "<bos>") if text in texts), None)
    return found.using(Conventions(bos=bos, eos=ids[texts[0]], templates={"default": template}))
