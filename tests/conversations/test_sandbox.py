"""Templates of others: bounded, and refused in one line."""

import pytest

from byhand.conversations.sandbox import Template
from byhand.errors import DataError

pytest.importorskip("jinja2")
MESSAGES = [{"role": "user", "content": "abc"}]
HOSTILE = {
    "{% if %}": "cannot be used",
    "{{ messages[7].content.x }}": "refuses a conversation",
    "{{ raise_exception('not so') }}": "not so",
    "{{ ''.__class__.__mro__ }}": "unsafe|undefined",
    "{{ messages.append(1) }}": "unsafe|not safely",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "does not end within",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "recursion",
    "{{ range(100000000) }}": "beyond",
    "{{ 'a' * 1000000000 }}": "beyond",
    "{{ 10 ** 10 ** 10 }}": "beyond",
    "{{ 'a' | center(1000000000) }}": "beyond",
    "{{ 'a'.ljust(1000000000) }}": "beyond",
    "{{ '%0999999999d' % 1 }}": "formats",
    "{% for a in range(999) %}{{ 'a' * 99999 }}{% endfor %}": "writes more than",
    "{% include '/etc/passwd' %}": "refuses",
    "\ufdd0": "noncharacter",
}


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_template_ends_in_one_line(source):
    with pytest.raises(DataError, match=HOSTILE[source]) as caught:
        Template(source, {})(MESSAGES)
    assert "\n" not in str(caught.value)


def test_what_ordinary_templates_use_works():
    source = (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 7 %}{{ m | tojson }}{% endfor %}"
        "{{ ns.n % 4 }}{{ '-' * 3 }}{{ bos_token }}"
    )
    assert Template(source, {"bos_token": "<s>"})(MESSAGES) == '{"role": "user", "content": "abc"}3---<s>'
