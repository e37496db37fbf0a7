"""Which kernel computes an equation in each runtime: the file and the function that a plan of training calls for it.

One kernel may serve several equations. A test holds the table against what plans record.
"""

ATTENTION = ("attention/causal_self_attention", "attention")
EMBEDDINGS = ("embedding/embedding", "embed")
PRODUCT = ("products/tiled_gemm", "tiled_gemm")

KERNELS: dict[str, dict[str, tuple[str, str]]] = {
    "loops": {
        "embedding": EMBEDDINGS,
        "add_positional": EMBEDDINGS,
        "layer_norm": ("norm/layer_norm", "normalise"),
        "linear": PRODUCT,
        "transpose": PRODUCT,  # of tied embeddings: the product reads the table the other way round
        "causal_self_attention": ATTENTION,
        **dict.fromkeys(
            ("split_qkv", "attention_scores", "causal_softmax", "softmax", "mix", "merge_heads"), ATTENTION
        ),
        "residual": PRODUCT,  # which begins its sums with the stream
        "gelu": ("pointwise/gelu", "bias_gelu"),
        "relu": ("pointwise/relu", "bias_relu"),
        "cross_entropy": ("loss/cross_entropy", "cross_entropy"),
        "adamw": ("update/adamw", "adamw"),
    },
}
"""runtime -> equation -> (file in its `kernels/`, function)."""
