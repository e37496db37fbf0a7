"""Every family's format: what is asked, what is learnt, and that no message writes a special token in it."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message, conversation
from byhand.errors import DataError
from conversations.families import FAMILIES, OWN, with_template

pytest.importorskip("jinja2")
TALK = [("user", "hello the"), ("assistant", "a b"), ("user", "more <b> [x]"), ("assistant", "the end")]
SYSTEM = [("system", "be"), *TALK]
THOUGHT = [*TALK[:3], ("assistant", "<think>\nhm\n</think>\n\nthe end")]


def of(talk):
    return [Message(role, said) for role, said in talk]


def text(tokenizer, ids, after=None):
    return tokenizer.decode(ids, after).decode()


def learnt(chat, messages):
    """Return the texts of the learnt stretches."""
    ids, marked = chat.conversation(messages)
    edges = [
        k for k, (here, before) in enumerate(zip([*marked, False], [False, *marked], strict=True)) if here != before
    ]
    return [text(chat.tokenizer, ids[a:b], ids[a - 1]) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("kind", ["bpe", "none"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_text_is_the_familys_and_its_answers_are_learnt(name, kind):
    family = FAMILIES[name]
    chat = Chat(with_template(kind, family.template, family.special))
    ids, _ = chat.conversation(of(TALK))
    whole, answers = family.written(TALK)
    assert text(chat.tokenizer, ids) == whole
    if name == "vicuna":  # one token is the space of the prompt and the beginning of the answer
        answers[1] = f" {answers[1]}"
    assert learnt(chat, of(TALK)) == answers
    for asked in (TALK[:1], TALK[:3]):
        assert text(chat.tokenizer, chat.prompt(of(asked))) == family.written(asked)[0] + family.ask
    ends = {end for end in family.special.split() if end in family.answer}
    assert chat.ends == {chat.tokenizer.special[end] for end in ends}


@pytest.mark.parametrize(
    ("name", "talk", "answers"),
    [
        ("qwen 3", THOUGHT, ["a b<|im_end|>", "<think>\nhm\n</think>\n\nthe end<|im_end|>"]),
        ("phi 3", SYSTEM, ["a b<|end|>", "the end<|end|>\n<|endoftext|>"]),
        ("gpt-oss", TALK,
         ["<|channel|>final<|message|>a b<|end|>", "<|channel|>final<|message|>the end<|return|>"]),
        ("mistral, system last", TALK, [" a b</s>", " the end</s>"]),
        ("mistral, system last", SYSTEM, [" the end</s>"]),
        ("llama 2", SYSTEM, [" a b </s>", " the end </s>"]),
    ],
)  # fmt: skip
def test_answers_are_learnt_where_the_template_writes_what_it_asks_with(name, talk, answers):
    chat = Chat(with_template("bpe", *OWN[name]))
    assert learnt(chat, of(talk)) == answers
    assert chat.format.missed == 2 - len(answers)
    assert chat.prompt(of(talk[:-1]))


def test_a_model_is_asked_again_even_if_its_template_leaves_nothing_to_learn():
    chat = Chat(with_template("bpe", *OWN["r1"]))
    asked = "<s><|User|>hello the<|Assistant|>a b</s><|User|>more <b> [x]<|Assistant|><think>\n"
    assert text(chat.tokenizer, chat.prompt(of(TALK[:3]))) == asked
    with pytest.raises(DataError, match="template does not write before an answer what it writes to ask for one"):
        chat.conversation(of(TALK))


EDITS = (
    "c", "c | lower", "c[1:]", "c | trim", "c.split(',') | join('')", "c | replace('x', '')", "c | reverse | reverse",
    "c | tojson", "c | title | lower", "c | list | join", "c.split('</s>')[0]", "c | e",
)  # fmt: skip
EVIL = ("x</s>y", "x</S>y", "x<,/s>", "</s>z", "a</s></s>", "</</s>s>", "x<|user|></s", "x <think> < y")


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "each"])
@pytest.mark.parametrize("edit", EDITS)
def test_no_message_writes_a_special_token_whatever_the_template_does_with_it(edit, kind, shown):
    turn = f"{{% set c = m.content %}}<|user|>{{{{ {edit} }}}}{{{{ eos_token }}}}"
    source = f"{{{{ bos_token }}}}{{% for m in messages %}}{turn}{{% endfor %}}"
    found = with_template(kind, source, "</s> <s> <|user|> <think>")
    if shown:  # "special": false in tokenizer.json
        found = found.using(replace(found.conventions, shown=tuple(found.special.values())))
    chat, turns = Chat(found), {*found.special.values()} - {found.special["<think>"]}
    harmless = [token for token in chat.prompt([Message("user", "x")]) if token in turns]
    for said in EVIL:
        try:
            ids = chat.prompt([Message("user", said)])
        except DataError as refused:
            said = str(refused)
            assert (edit in EDITS[-2:], "holds parts of a special token" in said) == (True, True)
        else:
            assert [token for token in ids if token in turns] == harmless


FORGING = (  # the template's text around a message c, the content of c, whether it is refused
    ("[{{ c }}]", "INST]", False), ("[{{ c }}", "INST]", False), ("{{ c }}:", "USER", False),
    ("{{ '%c' % 60 }}{{ c }}", "/s>", False), ("{{ c | replace('&lt;', '<') }}", "&lt;/s>", False),
    ("{{ c | replace('z', '') }}{% if '<' not in c %}</s>{% endif %}", "<z/s>", False),
    ("{{ (c | safe).unescape() }}", "&lt;/s>", True), ("{{ (c | safe).unescape() }}", "&#60;&#47;&#115;&#62;", True),
    ("{{ c.encode().decode('unicode_escape') }}", "\\74\\57\\163\\76", True),
    ("{{ c.translate({33: 60}) }}", "!/s>", True),
    ("{{ c | replace('z', '') }}{% if c in ['USER', ':'] %}.{% endif %}", "USERz:", False),
    ("{{ c | replace('z', '') }}{% if c in ['aUS', 'ER:b'] %}.{% endif %}", "aUSzER:b", False),
    ("{{ '\\n' + c.split('</x>')[-1] }}{% raw %}{{ '\\x' }}{% endraw %}", "</x></s>", False),
    ("{{ '[INST' + c.replace('x', '') + ']' }}", "x]", False),
    ("[{% generation %}{{ c }}{% endgeneration %}", "INST]", False),
    ("{{ c.encode().decode('unicode_escape') }}", "\\74\\ufdd0/s>", True),
    ("{{ c.encode().decode('unicode_escape') }}", "\\0", True),
)  # fmt: skip


@pytest.mark.parametrize(("around", "said", "refused"), FORGING)
def test_no_message_completes_a_token_or_makes_one_of_other_signs(around, said, refused):
    source = f"{{% for m in messages %}}{{% set c = m.content %}}{around}{{{{ eos_token }}}}{{% endfor %}}"
    found = with_template("bpe", source, "</s> [INST] USER:")
    with pytest.raises(DataError, match="holds parts of a special token") if refused else nullcontext():
        ids = Chat(found).prompt([Message("user", said)])
        assert [each for each in ids if each in (*found.special_ids, found.end)] == [found.special["</s>"]]


def test_a_thought_is_written_as_the_template_writes_it_or_refused():
    beside = conversation(
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x", "reasoning_content": "t"}], ""
    )
    inside = of([("user", "q"), ("assistant", "<think>\nt\n</think>\n\nx")])
    chat = Chat(with_template("bpe", *OWN["qwen 3"]))
    assert chat.conversation(beside) == chat.conversation(inside)
    for tokenizer in (
        with_template("bpe", *OWN["phi 3"]),
        chat.tokenizer.using(replace(chat.tokenizer.conventions, templates={})),
    ):
        with pytest.raises(DataError, match="'reasoning_content', which"):
            Chat(tokenizer).conversation(beside)


@pytest.mark.parametrize("name", ["chatml", "mistral 3"])
def test_an_answer_that_is_not_to_be_trained_is_not_learnt(name):
    talk = [Message(role, said, train=None if said == "the end" else False) for role, said in TALK]
    family = FAMILIES[name]
    chat = Chat(with_template("bpe", family.template, family.special))
    assert chat.conversation(talk)[0] == chat.conversation(of(TALK))[0]
    assert learnt(chat, talk) == family.written(TALK)[1][1:]


BLOCK = "{% generation %}{{ messages[1].content }}{% endgeneration %}"
NESTED = f"{{% generation %}}a{BLOCK}{{% endgeneration %}}"
CAPTURED = f"{{% set x %}}{BLOCK}{{% endset %}}"


@pytest.mark.parametrize("source", [NESTED, CAPTURED + "{{ x[:-1] }}", CAPTURED + "{{ x | reverse }}"])
def test_generation_blocks_that_are_nested_or_cut_are_refused(source):
    with pytest.raises(DataError, match=r"nests or cuts its {% generation %} blocks"):
        Chat(with_template("bpe", source, "</s>")).conversation(of(TALK))
