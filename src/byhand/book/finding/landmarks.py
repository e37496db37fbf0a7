"""What people look for besides equations: the code that wires, records, trains and stores, by its seed name too."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A definition in the package: `path` within it and the `definition`'s dotted name there."""

    name: str
    title: str
    title_zh: str
    path: str
    definition: str
    seed_names: tuple[str, ...] = ()


PLACES = (
    Place(
        "sample_batch",
        "Batch of next-token pairs",
        "下一词元预测的样本批",
        "corpus/dataset.py",
        "Corpus.sample_batch",
        ("data::ByteDataset::sample_batch", "data::ByteDataset"),
    ),
    Place("config", "Hyperparameters of a model", "模型超参数", "config.py", "ModelConfig", ("model::Config",)),
    Place("model", "The model and its parameters", "模型及其参数", "model.py", "TinyGPT", ("model::TinyGPT",)),
    Place(
        "forward_logits",
        "Decoder forward pass",
        "解码器前向传播",
        "model.py",
        "TinyGPT.forward_logits",
        ("model::TinyGPT::forward_logits",),
    ),
    Place("block", "Transformer block", "Transformer 块", "layers/block.py", "Block.apply", ()),
    Place("mlp", "Feed-forward network (MLP)", "前馈网络（MLP）", "layers/mlp.py", "MLP.apply", ()),
    Place("loss", "Loss of a batch", "一批样本的损失", "model.py", "TinyGPT.loss", ("model::TinyGPT::loss",)),
    Place("tensor", "Tensor", "张量", "engine/tensor.py", "Tensor", ("nn::Tensor",)),
    Place("node", "Node of the recorded graph", "计算图的节点", "engine/tensor.py", "Node", ("nn::Node",)),
    Place(
        "backward",
        "Backpropagation",
        "反向传播",
        "engine/backward.py",
        "backward",
        ("nn::Tensor::backward",),
    ),
    Place("no_grad", "Computing without recording", "不记录梯度", "engine/interpreter.py", "no_grad", ("GradMode",)),
    Place("gradcheck", "Gradient check", "梯度检验", "engine/gradcheck.py", "gradcheck", ()),
    Place("optimizer", "Optimizer step", "优化器的一步", "optim.py", "AdamW.step", ()),
    Place("learning_rate", "Learning-rate schedule", "学习率调度", "optim.py", "learning_rate", ()),
    Place("clip_gradients", "Gradient clipping", "梯度裁剪", "optim.py", "clip_gradients", ()),
    Place("train", "One training step", "一个训练步", "train.py", "Trainer.update", ("train_gpt",)),
    Place("generate", "Generation loop", "文本生成循环", "generation.py", "generate", ("generate",)),
    Place("kv_cache", "KV cache", "键值缓存", "runtimes/tape/decoder.py", "KVCache", ()),
    Place("save", "Saving a checkpoint", "保存检查点", "runs/checkpoint.py", "save", ("ckpt::save",)),
    Place("load", "Loading a checkpoint", "加载检查点", "runs/checkpoint.py", "load", ("ckpt::load",)),
)
