"""`byhand explain RUN TARGET`: how a number of a model is computed, and from which numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.explain.explainer import Explainer
from byhand.book.explain.explanation import BEFORE, Explanation
from byhand.book.explain.text import text
from byhand.book.words.language import Language, Words, preferred
from byhand.cli.arguments.drawing import Drawing
from byhand.cli.arguments.parsing import Given, read, text_bytes
from byhand.cli.arguments.settings import Positional, Switch, settings
from byhand.cli.learn.plotting import Plot, write
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import quoted
from byhand.errors import DataError, ExplainError, NoElementError, NonFiniteError
from byhand.interop import exchange
from byhand.quantities import counted
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.tracing.elements import Element
from byhand.tracing.non_finite import non_finite_gradient, non_finite_value
from byhand.tracing.sampling import TOKEN
from byhand.tracing.targets import parse_target
from byhand.tracing.updates import PARTS

DEEPEST = 100  # only models with hundreds of layers compute a number in more steps
OF_NEXT = (
    "next.logits",
    "next.counts",
    "next.penalised",
    "next.bias",
    "next.biased",
    "next.scaled",
    "next.top_k",
    "next.top_p",
    "next.min_p",
    "next.p",
)
OF_A_NUMBER = {"grad", "depth", "terms", "plot", "json", *settings(Drawing)}  # flags that need a target
COUNTED = ("frequency_penalty", "presence_penalty")
VOCABULARY = {"wte": 0, **dict.fromkeys(("logits", "lm_head.w", "lm_head.b", *OF_NEXT), -1)}  # the vocabulary's axis
UPDATES = Words(
    "and PARAMETER.m, .v, .theta, .update after the next step", "以及下一步更新后的 PARAMETER.m、.v、.theta、.update"
)
DRAW = Words(
    "and how the next token is drawn: next.penalised, .biased, .scaled, .top_k, .top_p, .min_p, .p, .token",
    "以及下一个词元怎样抽取：next.penalised、.biased、.scaled、.top_k、.top_p、.min_p、.p、.token",
)
POSITIONS = Words(
    "positions: {T} for a value; {shorter} for the loss, a gradient or an update, as without --targets the last "
    "token is only predicted",
    "位置数：数值为 {T}；损失、梯度与更新为 {shorter}，因为没有 --targets 时最后一个词元只用来预测",
)
A_NUMBER = Words("a number", "一个数")  # in place of a shape


@dataclass(frozen=True)
class Options:
    """Explain one number of a trained model: the equation, its terms, and the numbers it was made from.

    A target is a name and an index: blocks.1.attn.weights[0,0,2,1], logits[0,4,101], lm_head.w[3,97], loss;
    PARAMETER.m, .v, .theta and .update show a parameter after the next step; next.p[97] and next.token show how the
    token after the prompt is drawn.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    target: Positional[str] = ""
    """What to explain; -1 is the last place of an axis. Omit it to list all names with their shapes."""
    prompt: str = "To be"
    """The text that the model reads."""
    targets: str | None = None
    """The text to predict: a byte (or token) for each of the prompt's; the prompt shifted by one if not given."""
    grad: Switch = False
    """Explain the derivative of the loss with respect to the target instead, and show a central difference too."""
    depth: int = 1
    """How many levels to explain: 2 explains the target's inputs too."""
    terms: int = 8
    """How many terms and inputs to show and explain; one line sums the rest."""
    plot: Plot = None
    """Draw the number in its array, and its terms as bars, as SVG; without a file name, explain-NAME.svg in the
    current folder."""
    lang: Language = field(default_factory=preferred)
    """Language; from LANG if not given."""
    drawing: Drawing = field(default_factory=Drawing)
    last: Switch = False
    """Use the weights of the last step, even if the run averages them; gradients and updates always do."""
    json: Switch = False
    """Print JSON: the arithmetic as a tree of named numbers; with --terms, or above 400,000 numbers, only the largest
    terms of each sum, with the count and sum of the rest."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand explain")
    options = given.over()
    loaded, explainer, explanation = explained(given)
    if explanation is None:
        show(_names(explainer, options.lang))
        show(UPDATES.said(options.lang))
        show(DRAW.said(options.lang))
        if options.targets is None:
            T = len(explainer.first_row)
            show(POSITIONS.said(options.lang, T=T, shorter=T - 1))
        return 0
    wrote = ""
    if options.plot is not None:
        svg = picture(explainer, explanation, options.lang, options.terms, loaded.tokenizer, explainer.first_row)
        wrote = write(
            svg, options.plot, f"explain-{'d-' if explanation.gradient else ''}{explanation.name}.svg", options.lang
        )
    if options.json:
        show_json(explanation.as_json(options.terms if "terms" in given.values else None), indent=1)
    else:
        show(text(explanation, options.lang, options.terms, partial(token_text, loaded.tokenizer)))
    if wrote:
        (say if options.json else show)(wrote)
    return 0


class Passes:
    """Reads models and computes passes, and keeps the last of each: questions often are about the same."""

    def __init__(self) -> None:
        self._read: tuple[Any, Checkpoint] | None = None
        self._computed: tuple[Any, Explainer] | None = None

    def read(self, run: Path, moments: bool) -> Checkpoint:
        """Return a model, with moments if they are asked for."""
        if not self._read or self._read[0] not in ((run, moments), (run, True)):
            self._read = self._computed = None  # before the next one needs as much memory
            self._read = (run, moments), exchange.model(run, moments=moments, unread=False)
        return self._read[1]

    def compute(self, loaded: Checkpoint, average: bool, tokens: Any, targets: Any, drawing: Drawing) -> Explainer:
        """Return the pass of a model over tokens."""
        asked = id(loaded), average, tokens, targets, drawing
        if not self._computed or self._computed[0] != asked:
            self._computed = None
            model, clip = loaded.model(average), loaded.config.optim.grad_clip
            self._computed = asked, Explainer(model, tokens, targets, loaded.optimizer(), clip, drawing)
        return self._computed[1]


def explained(
    given: Given[Options], passes: Passes | None = None
) -> tuple[Checkpoint, Explainer, Explanation | None]:
    """Return the model that was read, its pass over the prompt, and the number explained; None without a target."""
    passes = passes or Passes()
    options = given.over()
    if options.depth < 1 or options.terms < 1:
        raise ExplainError("--depth and --terms must be at least 1.")
    if options.depth > DEEPEST:
        raise ExplainError(f"--depth is {options.depth}, but must be at most {DEEPEST}. Use --depth 2.")
    name, index, grad = parse_target(options.target)
    if not name:
        given.refuse(OF_A_NUMBER, "without a target, such as blocks.0.attn.weights[0,0,2,1]")
    if not name.startswith("next."):
        given.refuse(settings(Drawing), "but next.p, next.token and what they are made of")
    given.refuse(COUNTED, "here: they count tokens that were drawn, and the prompt's were not")
    grad = grad or options.grad
    parameter, _, part = name.rpartition(".")
    loaded = passes.read(options.run, part in PARTS)
    of_a_parameter = parameter in loaded.parameters and name not in loaded.parameters
    of_the_update = of_a_parameter and part in PARTS  # not attention's v
    needs_loss = grad or name == "loss" or of_a_parameter
    if name and not needs_loss:
        given.refuse(("targets",), f"for {quoted(name)}, but for the loss, a gradient or an update")
    wanted = options.targets if name else options.targets or options.prompt  # the list shows a value's whole prompt
    tokens, targets = read_prompt(options.prompt, wanted, needs_loss, loaded.tokenizer)
    average = not (options.last or grad or of_the_update)
    if loaded.of_average:
        say(loaded.of_average if average else "weights of the last step, from which training resumes")
    with np.errstate(all="ignore"):
        explainer = passes.compute(loaded, average, tokens, targets, options.drawing)
        unsound = non_finite_value(explainer.trace.result)
        if not unsound and (grad or of_the_update):
            unsound = non_finite_gradient(explainer.gradients.steps)
        if unsound:
            raise NonFiniteError(f"with this model {unsound} is not finite. Use an earlier checkpoint of the run.")
    if not name:
        return loaded, explainer, None
    try:
        explanation = explainer.explain(name, index, grad, options.depth, options.terms)
    except NoElementError as error:
        if not needs_loss or options.targets is not None:
            raise
        unit = loaded.tokenizer.unit
        raise NoElementError(
            f"{error} The loss reads {len(tokens[0])} of the prompt's {len(tokens[0]) + 1} {unit}s, as the last one "
            "is only predicted."
        ) from None
    return loaded, explainer, explanation


def read_prompt(
    prompt: str, targets: str | None, needs_loss: bool, tokenizer: Tokenizer = BYTES
) -> tuple[list[list[int]], list[list[int]] | None]:
    """Return tokens and targets, each (1, T); without a target text, the targets are the prompt's own next tokens."""
    given, unit = tokenizer.encode(text_bytes(prompt, "--prompt")), tokenizer.unit
    if not given:
        raise DataError(f"--prompt is empty. Give at least one {unit}.")
    if targets is not None:
        wanted = tokenizer.encode(text_bytes(targets, "--targets"))
        if len(wanted) != len(given):
            raise DataError(
                f"--targets holds {counted(len(wanted), unit)} and the prompt {len(given)}. Give one for each."
            )
        return [given], [wanted]
    if not needs_loss:
        return [given], None
    if len(given) < 2:
        raise DataError(f"the loss needs a {unit} to predict. Use a --prompt of at least two {unit}s, or --targets.")
    return [given[:-1]], [given[1:]]


def token_text(tokenizer: Tokenizer, element: Explanation | Element) -> str:
    """Return the text of the token that an element refers to, by its id, row of a table, or column of logits."""
    parameter, _, part = element.name.removesuffix(BEFORE.en).rpartition(".")
    name = parameter if part in PARTS else element.name
    if name in ("tokens", "targets", TOKEN):
        token = int(element.value)
    elif name in VOCABULARY:
        token = element.index[VOCABULARY[name]]
    else:
        return ""
    spelled = _spelled(tokenizer, token)
    return f"   ({spelled})" if spelled else ""


def _spelled(tokenizer: Tokenizer, token: int) -> str:
    """Return a token's text in quotation marks, or "" for none."""
    spelled = tokenizer.token_bytes.get(token, b"")
    try:
        return quoted(spelled.decode()) if spelled else ""
    except UnicodeDecodeError:  # a part of a character
        return repr(spelled)


def picture(
    explainer: Explainer, explanation: Explanation, lang: str, shown: int, tokenizer: Tokenizer, tokens: list[int]
) -> str:
    """Return the explained number in its array, and its terms, as SVG."""
    from byhand.book.pictures.of_explanations import svg

    name, grad = explanation.name, explanation.gradient
    array = explainer.array(name, grad)
    made = explainer.trace.made.get(name)
    axes = len(array.shape)
    masked = made is not None and made[0].equation.name == "causal_softmax"
    positions = {axes - 2} | ({axes - 1} if made and made[0].results[0].shape[-2:] == (len(tokens),) * 2 else set())
    parameter, _, part = name.rpartition(".")
    vocabulary = VOCABULARY.get(parameter if part in PARTS else name)

    def spell(axis: int, place: int) -> str:
        if vocabulary is not None and axis == vocabulary % axes:
            return _spelled(tokenizer, place)
        return _spelled(tokenizer, tokens[place]) if made and axes > 2 and axis in positions else ""

    return svg(explanation, array, lang, shown, spell, (lambda i, j: j > i) if masked else None)


def _names(explainer: Explainer, lang: Language) -> str:
    """List all names that can be explained, with shapes."""
    trace = explainer.trace
    names = [*explainer.model.parameters(), *trace.made]
    width = max(map(len, names))
    return "\n".join(f"{name:<{width}}  {tuple(trace.tensor(name).shape) or A_NUMBER.said(lang)}" for name in names)
