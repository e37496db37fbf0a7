"""Places besides equations that readers search for: the code that wires, records, trains and stores."""

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Place(Words):
    """A definition in the package, its seed names, and how formulas write what it computes.

    `path` is its file within the package, `definition` its dotted name there.
    """

    name: str
    path: str
    definition: str
    seed_names: tuple[str, ...] = ()
    notations: tuple[str, ...] = ()


PLACES = (
    Place(
        "Batch of next-token pairs",
        "下一词元预测的样本批",
        "sample_batch",
        "corpus/dataset.py",
        "Corpus.sample_batch",
        ("data::ByteDataset::sample_batch", "data::ByteDataset"),
        notations=("y_t = x_{t+1}", "x_t = bytes[s + t]", "y_t = bytes[s + t + 1]"),
    ),
    Place("Hyperparameters of a model", "模型超参数", "config", "config.py", "ModelConfig", ("model::Config",)),
    Place("The model and its parameters", "模型及其参数", "model", "model.py", "TinyGPT", ("model::TinyGPT",)),
    Place(
        "Decoder forward pass",
        "解码器前向传播",
        "forward_logits",
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
        "Transformer block",
        "Transformer 块",
        "block",
        "layers/block.py",
        "Block.apply",
        notations=(
            "x = LN(x + f(x))",
            r"H = \mathrm{LN}(X), A = \mathrm{CausalSelfAttn}(H), X = X + A, M = \mathrm{LN}(X), "
            r"FF = \mathrm{MLP}(M), X = X + FF",
        ),
    ),
    Place(
        "Feed-forward network (MLP)",
        "前馈网络（MLP）",
        "mlp",
        "layers/mlp.py",
        "MLP.apply",
        notations=(
            r"FF = \mathrm{MLP}(M)",
            r"F = \mathrm{GELU}(M W_{fc} + b_{fc}), FF = F W_{out} + b_{out}",
            "F W_{out}",
            "W_2 max(0, W_1 x + b_1) + b_2",
        ),
    ),
    Place(
        "Loss of a batch",
        "一批样本的损失",
        "loss",
        "model.py",
        "TinyGPT.loss",
        ("model::TinyGPT::loss",),
        notations=("loss = cross_entropy(logits, y)",),
    ),
    Place("Tensor", "张量", "tensor", "engine/tensor.py", "Tensor", ("nn::Tensor",)),
    Place("Node of the recorded graph", "计算图的节点", "node", "engine/tensor.py", "Node", ("nn::Node",)),
    Place(
        "Backpropagation",
        "反向传播",
        "backward",
        "engine/backward.py",
        "backward",
        ("nn::Tensor::backward",),
        notations=("loss.backward()", r"\frac{dL}{dx} = \frac{dL}{dy} \frac{dy}{dx}"),
    ),
    Place("Computing without recording", "不记录梯度", "no_grad", "engine/interpreter.py", "no_grad", ("GradMode",)),
    Place("Gradient check", "梯度检验", "gradcheck", "engine/gradcheck.py", "gradcheck"),
    Place("Optimizer step", "优化器的一步", "optimizer", "optim.py", "AdamW.step", notations=("opt.step(params)",)),
    Place("Learning-rate schedule", "学习率调度", "learning_rate", "optim.py", "learning_rate"),
    Place("Gradient clipping", "梯度裁剪", "clip_gradients", "optim.py", "clip_gradients"),
    Place("One training step", "一个训练步", "train", "train.py", "Trainer.update", ("train_gpt",)),
    Place("Generation loop", "文本生成循环", "generate", "generation.py", "generate", ("generate",)),
    Place("KV cache", "键值缓存", "kv_cache", "runtimes/tape/decoder.py", "KVCache"),
    Place("Saving a checkpoint", "保存检查点", "save", "runs/checkpoint.py", "save", ("ckpt::save",)),
    Place("Loading a checkpoint", "加载检查点", "load", "runs/checkpoint.py", "load", ("ckpt::load",)),
)
