"""llama.cpp as a peer of generation: a model of the same shape, in a GGUF file that byhand's own export writes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from byhand.bench.shapes import Shape
from byhand.errors import ConfigError, install
from byhand.files.writing import create
from byhand.formats.names import Weights
from byhand.formats.registry import FORMATS
from byhand.interop.gguf.model import files
from byhand.model import TinyGPT
from byhand.runtimes.cores import cores
from byhand.tokenizers.byte import ByteTokenizer

TYPES = {"bfloat16": "float16"}  # its fastest 16-bit type, by our format


def text_of(
    shape: Shape, tokens: int, batch: int, threads: int, weights: Weights, prompt: int = 1
) -> Callable[[], Any]:
    """Return a function that draws `tokens` greedily after `prompt` tokens, in `batch` parallel streams.

    The architecture is GPT-2's if the shape has none. ConfigError if the library is missing or loads no such model.
    """
    try:
        library: Any = import_module("xllamacpp")
    except ImportError:
        raise ConfigError(f"--peer llama.cpp needs xllamacpp. Use {install('xllamacpp')}.") from None
    model = TinyGPT(replace(shape, architecture=shape.architecture or "gpt2").model(tokens + prompt))
    arrays = {name: p.data for name, p in model.parameters().items()}
    settings = library.CommonParams()
    settings.verbosity = 0  # its log goes to standard error
    with tempfile.TemporaryDirectory() as folder:
        ((name, content),) = files(model.config, arrays, ByteTokenizer(), FORMATS[TYPES.get(weights, weights)])
        create(Path(folder) / name, content)
        settings.model.path = str(Path(folder) / name)
        settings.n_ctx, settings.n_parallel = batch * (tokens + prompt), batch
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads or cores()
        try:
            server = library.Server(settings)
        except RuntimeError as error:
            raise ConfigError(f"llama.cpp does not load this model: {error}. Leave --peer out.") from None
    asked = {
        "prompt": [1] * prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
    }

    def draw(_: int) -> None:
        answer = server.handle_completions(asked)
        answer = answer if isinstance(answer, dict) else json.loads(answer)
        made = answer.get("usage", {}).get("completion_tokens")
        if made != tokens:
            raise ConfigError(f"llama.cpp drew {made} tokens of {tokens}. Use fewer --tokens.")

    def run() -> None:
        with ThreadPoolExecutor(batch) as streams:
            list(streams.map(draw, range(batch)))

    return run
