"""Writes stored_ids.json: texts, a tokenizer of each split, and the ids that other programs give.

    python tests/tokenizers/make_fixtures.py      in an environment with tokenizers, tiktoken and rustbpe

The tokenizers are trained here, so the file is our own. Where two programs differ, it writes nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from byhand.tokenizers.hugging_face import as_hugging_face
from byhand.tokenizers.splitting import SPLITS
from byhand.tokenizers.training import train
from oracle.nasty_texts import SPECIAL, nasty_texts
from oracle.token_peers import peers_of

STORED = Path(__file__).with_name("stored_ids.json")
LEARNT = "\n".join(["the cat's hello world, 1234 times!  \n\n", *nasty_texts(40, 1)])


def main() -> None:
    """Write the file."""
    found = {}
    texts = [*nasty_texts(40, 2, special=True), "it's IT'S don'\u017f  x\n\n \n", "a \n  "]
    for split in SPLITS:
        tokenizer = train([LEARNT.encode()], 330, split, SPECIAL)
        rows = []
        for text in texts:
            (ids,) = {tuple(encode(text)) for encode in peers_of(tokenizer).values()}
            rows.append(ids)
        found[split] = {"tokenizer.json": json.loads(as_hugging_face(tokenizer)), "ids": rows}
    STORED.write_text(json.dumps({"texts": texts, "splits": found}) + "\n")


if __name__ == "__main__":
    main()
