"""Generated tables about models in and out: our arrays and the tensors of others."""

from __future__ import annotations

from typing import Any

from byhand.book.pages.blocks.markdown import Rows, table_block
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.interop.families import Family
from byhand.interop.gguf import model as gguf
from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.tensors import pieces
from byhand.model import declared

FORMATS = {"hf": FAMILIES, "gguf": gguf.KNOWN}
SIZES = {"vocab_size": 50, "seq_len": 32, "d_model": 8, "n_heads": 2, "d_ff": 40}


def _example(family: Family) -> ModelConfig:
    """Return a model of a family, small enough that no two widths are equal."""
    settings: dict[str, Any] = {**family.usual(), **SIZES}
    if family.may_vary("n_kv_heads"):
        settings |= {"n_heads": 4, "n_kv_heads": 2}
    if family.may_vary("d_head"):
        settings["d_head"] = 6
    return ModelConfig(**settings)


@table_block("Ours|Theirs|How", "本项目|对方|关系")
def exchange_tensors(goal: str, family: str) -> Rows:
    """A family's tensors: our array and their tensor, each with its shape, and the conversion."""
    config = _example(FAMILIES[family])
    for piece in pieces(config, FORMATS[goal][family].tensors):
        ours = declared(config)[piece.ours[0]].shape
        how = Words("transposed", "转置") if piece.transposed else Words("unchanged", "原样")
        how = Words("less 1", "减 1") if piece.less else how
        if not isinstance(piece.columns, slice):
            how = Words("head by head, transposed", "逐头排列，转置")
        elif len(piece.ours) > 1:
            how = Words("side by side, transposed", "并排，转置")
        elif piece.columns.stop - piece.columns.start != ours[-1]:
            columns = f"`[:, {piece.columns.start}:{piece.columns.stop}]`"
            how = Words(f"columns {columns}, transposed", f"列 {columns}，转置")
            if FORMATS[goal][family].pairing == "neighbours" and "_v" not in piece.theirs:
                how = Words(f"columns {columns}, permuted, transposed", f"列 {columns}，重排后转置")
        yield (
            f"{', '.join(f'`{name}`' for name in piece.ours)} {list(ours)}",
            f"`{piece.theirs}` {list(piece.shape)}",
            how,
        )
