"""Other programs' encoders of a tokenizer of ours: `tokenizers` by its file, tiktoken by its ranks."""

from __future__ import annotations

from collections.abc import Callable

from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.hugging_face import as_hugging_face
from byhand.tokenizers.ranks import as_ranks, of_ranks

Encode = Callable[[str], list[int]]


def peers_of(tokenizer: BytePairTokenizer) -> dict[str, Encode]:
    """Return encoders that must give the same ids; no one pattern of tiktoken's is SmolLM's split."""
    import tiktoken

    import tokenizers

    file = tokenizers.Tokenizer.from_str(as_hugging_face(tokenizer).decode())
    found: dict[str, Encode] = {"tokenizers": lambda text: file.encode(text, add_special_tokens=False).ids}
    if tokenizer.split.regex:
        ranks = of_ranks(as_ranks(tokenizer), tokenizer.split.name)
        encoding = tiktoken.Encoding(
            "ours",
            pat_str=tokenizer.split.regex[-1],
            mergeable_ranks={ranks.token_bytes[token]: token for token in ranks.vocabulary.values()},
            special_tokens=tokenizer.special,
        )
        found["tiktoken"] = lambda text: encoding.encode(text, allowed_special="all")
    return found
