"""The requests of OpenAI's API, and what this server takes of them.

Fields that nobody knows are ignored, those that are known and missing here are refused by name.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from byhand.runtimes.sampling import COLDEST, Sampling
from byhand.tokenizers.conventions import Conventions

MOST_STOPS, LONGEST_STOPS = 16, 1000  # texts, and bytes of all together
MOST_TOP = 20  # alternatives of a token
MOST_BIASED = 1024  # tokens
SEEDS = 1 << 62  # seeds below it, and those that follow them, are seeds of `Sampling`
SMALLEST = 1e-9  # a top_p of 0 leaves the likeliest token, as this does

FIRST = Field(fail_fast=True)  # the first wrong item says it: an error for each of 10^5 would take seconds
Id = Annotated[int, Field(ge=0, lt=1 << 31)]
Ids = Annotated[list[Id], FIRST]
Penalty = Annotated[float, Field(ge=-2, le=2)] | None
UNFIT = "it holds half of a surrogate pair, which is not text"


def is_text(text: str) -> bool:
    """Return whether a text is Unicode; JSON can write half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# What other servers take that changes a text, and is missing here
MISSING = (
    "guided_json", "guided_regex", "guided_grammar", "guided_choice", "structured_outputs", "grammar", "json_schema",
    "allowed_token_ids", "stop_token_ids", "bad_words", "min_tokens", "use_beam_search", "logits_processors",
    "prompt_logprobs", "prompt_embeds", "truncate_prompt_tokens",
)  # fmt: skip


class StreamOptions(BaseModel):
    """How a stream ends."""

    include_usage: bool | None = None


class TextRequest(BaseModel):
    """What requests for a text have in common."""

    model_config = ConfigDict(strict=True, extra="allow")
    refused: ClassVar[dict[str, Sequence[Any]]] = {
        **dict.fromkeys(MISSING, (False,)), "response_format": ({"type": "text"},)
    }  # fmt: skip

    model: Annotated[str, Field(max_length=1000)] | None = None
    max_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=1 << 20)] | None = None  # 0 and -1 cut nothing
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] | None = None
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    logit_bias: (
        dict[Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})$")], Annotated[float, Field(ge=-100, le=100)]] | None
    ) = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @field_validator("logit_bias", mode="before")
    @classmethod
    def _few(cls, bias: Any) -> Any:
        if isinstance(bias, dict) and len(bias) > MOST_BIASED:  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"more than {MOST_BIASED:,} tokens have a bias")
        return bias

    @field_validator("stop")
    @classmethod
    def _sound(cls, stop: str | list[str] | None) -> str | list[str] | None:
        texts = [stop] if isinstance(stop, str) else stop or []
        if not all(texts) or not all(map(is_text, texts)):
            raise ValueError("a stop text is empty, or holds half of a surrogate pair")
        if sum(len(text.encode()) for text in texts) > LONGEST_STOPS:
            raise ValueError(f"the stop texts have more than {LONGEST_STOPS:,} bytes")
        return stop

    @model_validator(mode="after")
    def _known(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if name in self.refused and value not in (None, "", [], {}, *self.refused[name]):
                raise ValueError(f"{name} is not there in this server; leave it out")
        if self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens):
            raise ValueError("max_tokens and max_completion_tokens differ; give one of them")
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options is only for a stream")
        return self

    @property
    def most(self) -> int | None:
        """How many tokens are asked for at most; None if it does not say."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def count(self) -> int:
        """How many texts are asked for, of each prompt."""
        return self.n or 1

    @property
    def candidates(self) -> int:
        """How many texts are drawn, of each prompt."""
        return self.count

    @property
    def stops(self) -> list[str]:
        """The texts that end a text."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    def sampling(self, conventions: Conventions, index: int, seed: int) -> Sampling:
        """Return how the candidate of this index is drawn, as the model suggests where the request does not say.

        seed  for a request that has none
        """
        given = {
            "temperature": self.temperature,
            "top_k": self.top_k if self.top_k is None else max(self.top_k, 0),
            "top_p": self.top_p if self.top_p is None else max(self.top_p, SMALLEST),
            "min_p": self.min_p,
            "repetition_penalty": self.repetition_penalty,
        }
        values = dict[str, Any]((name, value) for name, value in given.items() if value is not None)
        values |= conventions.suggested(values, greedy=values.get("temperature", 1) < COLDEST)
        values["top_k"] = int(values.get("top_k", 0)) or None
        first = (seed if self.seed is None else self.seed) % SEEDS
        bias = tuple((int(token), number) for token, number in (self.logit_bias or {}).items())
        counted: dict[str, Any] = {
            "frequency_penalty": self.frequency_penalty or 0.0,
            "presence_penalty": self.presence_penalty or 0.0,
        }
        return Sampling(**values, **counted, logit_bias=bias, seed=first + index)


class Completion(TextRequest):
    """A request for texts that continue prompts."""

    refused: ClassVar = {**TextRequest.refused, "suffix": ()}

    prompt: str | Annotated[list[str], FIRST] | Ids | Annotated[list[Ids], FIRST] | None = None
    best_of: Annotated[int, Field(ge=0, le=128)] | None = None  # 0 is as none
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MOST_TOP)] | None = None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.candidates < self.count:
            raise ValueError("best_of is below n; it must be at least n")
        if self.stream and self.candidates > self.count:
            raise ValueError("best_of above n cannot be streamed")
        if self.prompt == [] or (isinstance(self.prompt, list) and [] in self.prompt):
            raise ValueError("prompt is an empty list; give a text, or token ids")
        if not all(is_text(each) for each in self.prompts if isinstance(each, str)):
            raise ValueError(f"prompt: {UNFIT}")
        return self

    @property
    def candidates(self) -> int:
        """How many texts are drawn, of each prompt."""
        return self.best_of or self.count

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts, each a text or token ids."""
        match self.prompt:
            case None:
                return [""]
            case [int(), *_] as ids:
                return [ids]  # pyright: ignore[reportReturnType]
            case list() as several:
                return several  # pyright: ignore[reportReturnType]
            case text:
                return [text]

    @property
    def top(self) -> int | None:
        """How many alternatives of each token are asked for; None if no log-probability is."""
        return self.logprobs


class ChatCompletion(TextRequest):
    """A request for the answers to a conversation."""

    refused: ClassVar = {
        **TextRequest.refused,
        **dict.fromkeys(("tools", "functions", "audio", "prediction", "web_search_options", "chat_template"), ()),
        "tool_choice": ("none", "auto"),
        "function_call": ("none", "auto"),
        "modalities": (["text"],),
        "chat_template_kwargs": (),
        **dict.fromkeys(("continue_final_message", "echo"), (False,)),
        "add_generation_prompt": (True,),
    }

    messages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=4096)]
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP)] | None = None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs to be true")
        return self

    @property
    def top(self) -> int | None:
        """How many alternatives of each token are asked for; None if no log-probability is."""
        return self.top_logprobs or 0 if self.logprobs else None


class Tokenize(BaseModel):
    """A text whose tokens are asked for."""

    model_config = ConfigDict(strict=True)
    prompt: str
    add_special_tokens: bool | None = None

    @field_validator("prompt")
    @classmethod
    def _sound(cls, prompt: str) -> str:
        if not is_text(prompt):
            raise ValueError(UNFIT)
        return prompt


class Detokenize(BaseModel):
    """Tokens whose text is asked for."""

    model_config = ConfigDict(strict=True)
    tokens: Ids


class Explain(BaseModel):
    """A number that is to be explained, as `byhand explain --json --terms` does."""

    model_config = ConfigDict(strict=True, extra="forbid")
    prompt: Annotated[str, Field(max_length=4096)] = "To be"
    target: Annotated[str, Field(min_length=1, max_length=300)]
    targets: Annotated[str, Field(max_length=4096)] | None = None
    grad: bool = False
    depth: Annotated[int, Field(ge=1, le=4)] = 1
    terms: Annotated[int, Field(ge=1, le=4096)] = 8


def seed_of_none() -> int:
    """Return a seed for a request that has none: every answer is another one then."""
    return secrets.randbelow(SEEDS)
