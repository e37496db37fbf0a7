"""The equations, one file each, in the order in which data flows through them.

Importing this package fills the engine's registry. Each name here is the equation itself; its file of the same
name holds what it says, its forward, its derivative and its terms.
"""

from byhand.equations.adamw import adamw
from byhand.equations.add import add
from byhand.equations.add_positional import add_positional
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.embedding import embedding
from byhand.equations.gelu import gelu
from byhand.equations.layer_norm import layer_norm
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul
from byhand.equations.merge_heads import merge_heads
from byhand.equations.mix import mix
from byhand.equations.mul import mul
from byhand.equations.relu import relu
from byhand.equations.reshape import reshape
from byhand.equations.residual import residual
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.equations.transpose import transpose

__all__ = [
    "adamw",
    "add",
    "add_positional",
    "attention_scores",
    "causal_self_attention",
    "causal_softmax",
    "cross_entropy",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "matmul",
    "merge_heads",
    "mix",
    "mul",
    "relu",
    "reshape",
    "residual",
    "softmax",
    "split_qkv",
    "temperature",
    "top_k",
    "top_p",
    "transpose",
]
