"""Chat templates in the styles that public models have, with the tokens that they speak of."""

from __future__ import annotations

from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.conventions import Conventions
from toy_tokenizers import byte_pairs

CHATML = """
{%- for m in messages %}
    {{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""
LLAMA3 = """{{ bos_token }}{% if messages[0].role == 'system' %}{% set said = messages[0].content | trim %}\
{% set rest = messages[1:] %}{% else %}{% set said = '' %}{% set rest = messages %}{% endif %}\
{{ '<|start_header_id|>system<|end_header_id|>\n\n' }}{{ strftime_now('%Y') + '\n\n' }}{{ said }}\
{{ '<|eot_id|>' }}\
{% for m in rest %}{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ m.content | trim ~ '<|eot_id|>' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}
{% for m in messages %}
    {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('roles must alternate') }}
    {% endif %}
    {% set role = 'model' if m['role'] == 'assistant' else m['role'] %}
{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""
ZEPHYR = """{% for m in messages %}
{% if m.role == 'user' %}
{{ '<|user|>\n' + m.content + eos_token }}
{% elif m.role == 'system' %}
{{ '<|system|>\n' + m.content + eos_token }}
{% else %}
{{ '<|assistant|>\n'  + m.content + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
MISTRAL = """{%- set ns = namespace(system='') -%}{{ bos_token }}
{%- for m in messages -%}
    {%- if m.role == 'system' -%}{%- set ns.system = m.content + '\n\n' -%}{%- continue -%}{%- endif -%}
    {%- if m.role == 'user' -%}
        {{- ' [INST] ' + ns.system + m.content + ' [/INST]' -}}{%- set ns.system = '' -%}
    {%- else -%}
        {{- ' ' + m.content + eos_token -}}
    {%- endif -%}
{%- endfor -%}"""
TOLD = """{{ bos_token }}{% for m in messages %}
{{ '<|im_start|>' + m.role + '\n' }}
{%- if m.role == 'assistant' %}
{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}
{% else %}
{{- m.content | tojson }}<|im_end|>
{% endif %}
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
STYLES = {"chatml": CHATML, "llama 3": LLAMA3, "gemma": GEMMA, "mistral": MISTRAL, "told": TOLD}
SPECIAL = (
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "<think>",
)  # fmt: skip


def tokenizer(template: str = "", special: tuple[str, ...] = SPECIAL) -> BytePairTokenizer:
    """Return a tokenizer of bytes and special tokens, with this template."""
    base = byte_pairs()
    ids = {text: base.vocab_size + i for i, text in enumerate(special)}
    found = BytePairTokenizer(base.vocabulary, base.merges, special=ids)
    bos, eos, shown = ids.get("<s>"), ids.get("</s>"), [ids["<think>"]] if "<think>" in ids else []
    templates = {"default": template} if template else {}
    return found.using(Conventions(bos=bos, eos=eos, shown=tuple(shown), templates=templates))
