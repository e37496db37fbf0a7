"""`train_gpt`: load or start, train, save, check predictions, continue a prompt."""

from __future__ import annotations

import math
import sys

import numpy as np

from byhand.cli.seed.train_gpt_flags import Flags, parse_flags
from byhand.cli.terminal.interrupts import StopRequest
from byhand.cli.terminal.say import say, show
from byhand.config import ModelConfig
from byhand.corpus.dataset import ByteDataset
from byhand.corpus.text_file import TextFile
from byhand.errors import ConfigError, DataError
from byhand.generation import START
from byhand.host import keep_pages
from byhand.interop.seed_program import checkpoint as files
from byhand.interop.seed_program.checkpoint import SeedCheckpoint
from byhand.interop.seed_program.inspection import check_places, checks, escaped, next_tokens
from byhand.interop.seed_program.sampling import draw, text_generator
from byhand.interop.seed_program.training import require_text, start, train
from byhand.model import TinyGPT, parameter_shapes
from byhand.runtimes.numpy.decoder import next_logits
from byhand.tokenizers import vocab_files
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer

MOST_PARAMETERS = 1 << 26  # drawn in some minutes
AT_ONCE = 1 << 20  # drawn in a second or two
KEPT = b"\n\t"  # control bytes that --escape-bytes leaves as they are


def main(arguments: list[str]) -> int:
    """Run the original program with these arguments."""
    flags, overruled = parse_flags(arguments)
    keep_pages()
    text = None if flags.data is None else ByteDataset(TextFile(flags.data), f"--data {flags.data}")
    checkpoint = _checkpoint(flags, overruled)
    model = checkpoint.model
    tokenizer = _tokenizer(flags)
    prompt = _prompt(flags, tokenizer, model)
    allowed = tokenizer.printable(model.config.vocab_size, bool(flags.ascii_only))
    if not allowed.any():
        raise DataError(
            "no token of the model has a text that may be printed. Leave out --ascii-only or --tokenizer."
        )
    context = flags.sanity_ctx or model.config.seq_len
    places: list[int] = []
    stop = StopRequest()
    if flags.save is not None:
        files.prepare(flags.save)
    if text is not None:
        require_text(text, model.config.seq_len)
        if flags.checks:
            places = check_places(text, flags.checks, context, model.config.seq_len, flags.sanity_offset, flags.seed)
        with stop:
            for line in train(checkpoint, text, flags.steps, flags.batch, flags.seed):
                show(line, flush=True)
                if stop.signal:
                    break
    if flags.save is not None:
        files.save(flags.save, checkpoint)
        with_state = " (with optimizer state)" if checkpoint.has_optimizer else ""
        show(f"saved checkpoint '{flags.save}' at step {checkpoint.step}{with_state}")
    if stop.signal:
        return stop.exit_code
    if text is not None:
        for line in checks(model, text, places, context, flags.sanity_top, flags.sanity_preview):
            show(line)
    if flags.new_tokens or flags.print_next_top:
        _continue(flags, model, tokenizer, prompt, allowed)
    return 0


def _checkpoint(flags: Flags, overruled: list[str]) -> SeedCheckpoint:
    """Return the loaded checkpoint, or an untrained one of the flags' shape."""
    if flags.load is None:
        config = ModelConfig(seq_len=flags.seq, d_model=flags.dmodel, n_layers=flags.layers)
        _require_few_parameters(config)
        checkpoint = start(config, flags.lr, flags.seed)
    else:
        checkpoint = files.load(flags.load)
        if overruled:
            say(f"note: {', '.join(overruled)}: the loaded checkpoint's own values are used")
    checkpoint.has_optimizer = bool(flags.save_opt)
    return checkpoint


def _require_few_parameters(config: ModelConfig) -> None:
    """Raise ConfigError for too many initial weights to draw one by one; warn if that takes long."""
    count = sum(map(math.prod, parameter_shapes(config).values()))
    if count > MOST_PARAMETERS:
        raise ConfigError(
            f"--seq, --dmodel and --layers make {count:,} parameters, but the original program's recipe is for at "
            f"most {MOST_PARAMETERS:,}. Use byhand train."
        )
    if count > AT_ONCE:
        say(f"drawing {count:,} initial weights one by one, as the original program does")


def _tokenizer(flags: Flags) -> Tokenizer:
    if flags.bpe_vocab is None or flags.bpe_merges is None:
        return BYTES
    return BytePairTokenizer(*vocab_files.read(flags.bpe_vocab, flags.bpe_merges))


def _prompt(flags: Flags, tokenizer: Tokenizer, model: TinyGPT) -> list[int]:
    """Return the prompt's ids; DataError for one outside the model's vocabulary."""
    tokens = tokenizer.encode(flags.prompt or "")
    vocab_size = model.config.vocab_size
    if tokens and max(tokens) >= vocab_size:
        raise DataError(
            f"--prompt holds the token {max(tokens)}, but the model's ids go from 0 to {vocab_size - 1}. "
            f"Use --tokenizer byte, or a vocabulary of at most {vocab_size} tokens."
        )
    return tokens


def _continue(flags: Flags, model: TinyGPT, tokenizer: Tokenizer, prompt: list[int], allowed: np.ndarray) -> None:
    """Print the prompt and its continuation, each token as it is drawn, and the requested next-token lists."""
    rng = text_generator(flags.seed)
    tokens = [*prompt] or [min(START, model.config.vocab_size - 1)]
    top = flags.print_next_top or (10 if flags.print_next_top_each_step else 0)
    text_of = {i: tokenizer.decode([i]) for i in np.flatnonzero(allowed).tolist()}
    written = tokenizer.decode(prompt)
    for number, logits in enumerate(next_logits(model, tokens, max(flags.new_tokens, 1))):
        if top and (number == 0 or flags.print_next_top_each_step):
            for line in next_tokens(logits, top, lambda i: tokenizer.decode([i]) if i in tokenizer else b""):
                show(line)
        if number == flags.new_tokens:
            return
        tokens.append(draw(logits, rng, flags.temp, flags.topk, allowed))
        written += text_of[tokens[-1]]
        if not flags.print_next_top_each_step:
            _write(written, flags)
            written = b""
    _write(written + b"\n", flags)


def _write(content: bytes, flags: Flags) -> None:
    """Write bytes to standard output at once, unchanged or escaped."""
    if flags.escape_bytes:
        content = escaped(content, KEPT + b"'").encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
