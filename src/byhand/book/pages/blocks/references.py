"""The papers that pages refer to: one list, of which a page names those it needs."""

from __future__ import annotations

from pathlib import Path

from byhand.book.pages.blocks.markdown import block

PAPERS = {
    "transformer": ("Vaswani et al. 2017", "Attention Is All You Need", "https://arxiv.org/abs/1706.03762"),
    "gpt2": (
        "Radford et al. 2019",
        "Language Models are Unsupervised Multitask Learners",
        "https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf",
    ),
    "adam": ("Kingma & Ba 2015", "Adam: A Method for Stochastic Optimization", "https://arxiv.org/abs/1412.6980"),
    "adamw": (
        "Loshchilov & Hutter 2019",
        "Decoupled Weight Decay Regularization",
        "https://arxiv.org/abs/1711.05101",
    ),
    "muon": (
        "Jordan et al. 2024",
        "Muon: An optimizer for hidden layers in neural networks",
        "https://kellerjordan.github.io/posts/muon/",
    ),
    "cooldown": (
        "Hägele et al. 2024",
        "Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations",
        "https://arxiv.org/abs/2405.18392",
    ),
    "ema": (
        "Tarvainen & Valpola 2017",
        "Mean teachers are better role models",
        "https://arxiv.org/abs/1703.01780",
    ),
    "cosine": (
        "Loshchilov & Hutter 2017",
        "SGDR: Stochastic Gradient Descent with Warm Restarts",
        "https://arxiv.org/abs/1608.03983",
    ),
    "layer_norm": ("Ba, Kiros & Hinton 2016", "Layer Normalization", "https://arxiv.org/abs/1607.06450"),
    "rms_norm": ("Zhang & Sennrich 2019", "Root Mean Square Layer Normalization", "https://arxiv.org/abs/1910.07467"),
    "pre_norm": (
        "Xiong et al. 2020",
        "On Layer Normalization in the Transformer Architecture",
        "https://arxiv.org/abs/2002.04745",
    ),
    "gelu": ("Hendrycks & Gimpel 2016", "Gaussian Error Linear Units", "https://arxiv.org/abs/1606.08415"),
    "swiglu": ("Shazeer 2020", "GLU Variants Improve Transformer", "https://arxiv.org/abs/2002.05202"),
    "dropout": (
        "Srivastava et al. 2014",
        "Dropout: A Simple Way to Prevent Neural Networks from Overfitting",
        "https://jmlr.org/papers/v15/srivastava14a.html",
    ),
    "tying": (
        "Press & Wolf 2017",
        "Using the Output Embedding to Improve Language Models",
        "https://arxiv.org/abs/1608.05859",
    ),
    "clipping": (
        "Pascanu, Mikolov & Bengio 2013",
        "On the difficulty of training recurrent neural networks",
        "https://arxiv.org/abs/1211.5063",
    ),
    "rope": (
        "Su et al. 2021",
        "RoFormer: Enhanced Transformer with Rotary Position Embedding",
        "https://arxiv.org/abs/2104.09864",
    ),
    "bpe": (
        "Sennrich, Haddow & Birch 2016",
        "Neural Machine Translation of Rare Words with Subword Units",
        "https://arxiv.org/abs/1508.07909",
    ),
    "byt5": (
        "Xue et al. 2022",
        "ByT5: Towards a token-free future with pre-trained byte-to-byte models",
        "https://arxiv.org/abs/2105.13626",
    ),
    "nucleus": (
        "Holtzman et al. 2020",
        "The Curious Case of Neural Text Degeneration",
        "https://arxiv.org/abs/1904.09751",
    ),
    "min_p": (
        "Nguyen et al. 2024",
        "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs",
        "https://arxiv.org/abs/2407.01082",
    ),
    "ctrl": (
        "Keskar et al. 2019",
        "CTRL: A Conditional Transformer Language Model for Controllable Generation",
        "https://arxiv.org/abs/1909.05858",
    ),
    "top_k": (
        "Fan, Lewis & Dauphin 2018",
        "Hierarchical Neural Story Generation",
        "https://arxiv.org/abs/1805.04833",
    ),
}


@block
def references(page: Path, lang: str, *names: str) -> str:
    """Papers by name, each with its authors, year, title and address."""
    return "\n".join(f"- {authors}: [{title}]({url})" for authors, title, url in (PAPERS[name] for name in names))
