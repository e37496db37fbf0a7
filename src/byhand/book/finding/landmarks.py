"""What people look for besides equations: the code that wires, records, trains and stores, by its seed name too."""

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True, slots=True)
class Place:
    """A definition in the package, its seed names, and how formulas write what it computes.

    `path` is its file within the package, `definition` its dotted name there.
    """

    name: str
    title: Words
    path: str
    definition: str
    seed_names: tuple[str, ...] = ()
    notations: tuple[str, ...] = ()


PLACES = (
    Place(
        "sample_batch",
        Words("Batch of next-token pairs", "下一词元预测的样本批"),
        "corpus/dataset.py",
        "Corpus.sample_batch",
        ("data::ByteDataset::sample_batch", "data::ByteDataset"),
        notations=(r"y_t = x_{t+1}", r"x_t = bytes[s + t]", "y_t = bytes[s + t + 1]"),
    ),
    Place(
        "config", Words("Hyperparameters of a model", "模型超参数"), "config.py", "ModelConfig", ("model::Config",)
    ),
    Place("model", Words("The model and its parameters", "模型及其参数"), "model.py", "TinyGPT", ("model::TinyGPT",)),
    Place(
        "forward_logits",
        Words("Decoder forward pass", "解码器前向传播"),
        "model.py",
        "TinyGPT.forward_logits",
        ("model::TinyGPT::forward_logits",),
        notations=(
            r"logits = \mathrm{LN}(X) W_{lm} + b_{lm}",
            r"X_n = \mathrm{LN}(X), Z = X_n W_{lm} + b_{lm}",
            "logits = forward_logits(x)",
        ),
    ),
    Place(
        "block",
        Words("Transformer block", "Transformer 块"),
        "layers/block.py",
        "Block.apply",
        notations=(
            "x = LN(x + f(x))",
            r"H = \mathrm{LN}(X), A = \mathrm{CausalSelfAttn}(H), X = X + A, M = \mathrm{LN}(X), "
            r"FF = \mathrm{MLP}(M), X = X + FF",
        ),
    ),
    Place(
        "mlp",
        Words("Feed-forward network (MLP)", "前馈网络（MLP）"),
        "layers/mlp.py",
        "MLP.apply",
        notations=(
            r"FF = \mathrm{MLP}(M)",
            r"F = \mathrm{GELU}(M W_{fc} + b_{fc}), FF = F W_{out} + b_{out}",
            r"F W_{out}",
            "W_2 max(0, W_1 x + b_1) + b_2",
        ),
    ),
    Place(
        "loss",
        Words("Loss of a batch", "一批样本的损失"),
        "model.py",
        "TinyGPT.loss",
        ("model::TinyGPT::loss",),
        notations=("loss = cross_entropy(logits, y)",),
    ),
    Place("tensor", Words("Tensor", "张量"), "engine/tensor.py", "Tensor", ("nn::Tensor",)),
    Place("node", Words("Node of the recorded graph", "计算图的节点"), "engine/tensor.py", "Node", ("nn::Node",)),
    Place(
        "backward",
        Words("Backpropagation", "反向传播"),
        "engine/backward.py",
        "backward",
        ("nn::Tensor::backward",),
        notations=("loss.backward()", r"\frac{dL}{dx} = \frac{dL}{dy} \frac{dy}{dx}"),
    ),
    Place(
        "no_grad",
        Words("Computing without recording", "不记录梯度"),
        "engine/interpreter.py",
        "no_grad",
        ("GradMode",),
    ),
    Place("gradcheck", Words("Gradient check", "梯度检验"), "engine/gradcheck.py", "gradcheck"),
    Place(
        "optimizer",
        Words("Optimizer step", "优化器的一步"),
        "optim.py",
        "AdamW.step",
        notations=("opt.step(params)",),
    ),
    Place("learning_rate", Words("Learning-rate schedule", "学习率调度"), "optim.py", "learning_rate"),
    Place("clip_gradients", Words("Gradient clipping", "梯度裁剪"), "optim.py", "clip_gradients"),
    Place("train", Words("One training step", "一个训练步"), "train.py", "Trainer.update", ("train_gpt",)),
    Place("generate", Words("Generation loop", "文本生成循环"), "generation.py", "generate", ("generate",)),
    Place("kv_cache", Words("KV cache", "键值缓存"), "runtimes/tape/decoder.py", "KVCache"),
    Place("save", Words("Saving a checkpoint", "保存检查点"), "runs/checkpoint.py", "save", ("ckpt::save",)),
    Place("load", Words("Loading a checkpoint", "加载检查点"), "runs/checkpoint.py", "load", ("ckpt::load",)),
)
