"""The equations, one file each, in the order in which data flows through them.

Importing this package fills the engine's registry. Each name here is the equation itself; its file of the same
name holds what it says, its forward, its derivative and its terms.
"""

from byhand.equations.adamw import adamw as adamw
from byhand.equations.add import add as add
from byhand.equations.add_positional import add_positional as add_positional
from byhand.equations.attention_scores import attention_scores as attention_scores
from byhand.equations.causal_self_attention import causal_self_attention as causal_self_attention
from byhand.equations.causal_softmax import causal_softmax as causal_softmax
from byhand.equations.cross_entropy import cross_entropy as cross_entropy
from byhand.equations.embedding import embedding as embedding
from byhand.equations.gelu import gelu as gelu
from byhand.equations.layer_norm import layer_norm as layer_norm
from byhand.equations.linear import linear as linear
from byhand.equations.matmul import matmul as matmul
from byhand.equations.merge_heads import merge_heads as merge_heads
from byhand.equations.mix import mix as mix
from byhand.equations.mul import mul as mul
from byhand.equations.relu import relu as relu
from byhand.equations.reshape import reshape as reshape
from byhand.equations.residual import residual as residual
from byhand.equations.softmax import softmax as softmax
from byhand.equations.split_qkv import split_qkv as split_qkv
from byhand.equations.temperature import temperature as temperature
from byhand.equations.top_k import top_k as top_k
from byhand.equations.top_p import top_p as top_p
from byhand.equations.transpose import transpose as transpose
