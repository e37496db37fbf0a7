"""Places besides equations that readers search for: the code that wires, records, trains and stores."""

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Place(Words):
    """A definition in the package, its seed names, and how formulas write what it computes.

    `path` is its file within the package, `definition` its dotted name there; `asked` holds names in other programs
    and questions that lead here, separated by commas.
    """

    name: str
    path: str
    definition: str
    seed_names: tuple[str, ...] = ()
    notations: tuple[str, ...] = ()
    asked: str = ""


PLACES = (
    Place(
        "Batch of next-token pairs",
        "下一词元预测的批次",
        "sample_batch",
        "corpus/dataset.py",
        "Corpus.sample_batch",
        ("data::ByteDataset::sample_batch", "data::ByteDataset"),
        notations=("y_t = x_{t+1}", "x_t = bytes[s + t]", "y_t = bytes[s + t + 1]"),
        asked=(
            "get_batch, DataLoader, torch.utils.data.Dataset, teacher forcing, shift the labels, labels, targets, "
            "inputs and targets, training pairs, 训练样本, 数据加载, 输入和目标, 标签右移, 数据怎么切成批次, "
            "教师强制"
        ),
    ),
    Place(
        "Hyperparameters of a model",
        "模型超参数",
        "config",
        "model_config.py",
        "ModelConfig",
        ("model::Config",),
        asked="GPTConfig, GPT2Config, AutoConfig, settings of the model, 配置, 模型设置",
    ),
    Place(
        "The model and its parameters",
        "模型及其参数",
        "model",
        "model.py",
        "TinyGPT",
        ("model::TinyGPT",),
        asked=(
            "nn.Module, GPT2LMHeadModel, model.parameters(), named_parameters, nn.Parameter, state_dict, "
            "number of parameters, parameter count, how many parameters, model size, 参数量, 参数个数, 多少参数, "
            "模型大小, 可学习参数"
        ),
    ),
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
        asked=(
            "forward, model.forward, language model, causal language model, hidden states, 语言模型, 隐藏状态, "
            "前向计算"
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
        asked=(
            "GPT2Block, DecoderLayer, nn.TransformerEncoderLayer, transformer layer, encoder layer, one layer, "
            "Transformer 层, 一层"
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
        asked="GPT2MLP, c_fc, up_proj, down_proj, fc1, fc2, position-wise feed-forward, 前馈层",
    ),
    Place(
        "LM head",
        "语言模型头",
        "lm_head",
        "layers/head.py",
        "LMHead.apply",
        notations=(r"Z = X_n W_{lm} + b_{lm}", r"logits = X W_{lm} + b_{lm}"),
        asked="lm_head, LMHead, output layer, output head, unembed, 输出层, 语言模型头",
    ),
    Place(
        "Loss of a batch",
        "批次的损失",
        "loss",
        "model.py",
        "TinyGPT.loss",
        ("model::TinyGPT::loss",),
        notations=("loss = cross_entropy(logits, y)",),
        asked="criterion, loss function, compute the loss, 计算损失",
    ),
    Place(
        "Tensor",
        "张量",
        "tensor",
        "engine/tensor.py",
        "Tensor",
        ("nn::Tensor",),
        asked="torch.Tensor, requires_grad, ndarray, .grad, 梯度存在哪里",
    ),
    Place(
        "Node of the recorded graph",
        "计算图的节点",
        "node",
        "engine/tensor.py",
        "Node",
        ("nn::Node",),
        asked="grad_fn, autograd graph, dynamic graph, tape, 动态图",
    ),
    Place(
        "Backpropagation",
        "反向传播",
        "backward",
        "engine/backward.py",
        "backward",
        ("nn::Tensor::backward",),
        notations=("loss.backward()", r"\frac{dL}{dx} = \frac{dL}{dy} \frac{dy}{dx}"),
        asked=(
            "loss.backward(), torch.autograd.grad, backprop, how are gradients computed, vjp, "
            "vector-Jacobian product, Jacobian, derivative, 求导, 导数, 误差反向传播, 雅可比, 梯度怎么算, "
            "反向传播怎么推导"
        ),
    ),
    Place(
        "Computing without recording",
        "不记录梯度",
        "no_grad",
        "engine/interpreter.py",
        "no_grad",
        ("GradMode",),
        asked=(
            "torch.no_grad, torch.inference_mode, model.eval(), detach, requires_grad_(False), 关闭梯度, 停止梯度"
        ),
    ),
    Place(
        "Gradient check",
        "梯度检验",
        "gradcheck",
        "engine/gradcheck.py",
        "gradcheck",
        asked="torch.autograd.gradcheck, numerical gradient, are my gradients right, 检查梯度, 梯度对不对",
    ),
    Place(
        "Optimizer step",
        "优化器的一步",
        "optimizer_step",
        "optim.py",
        "AdamW.step",
        notations=("opt.step(params)",),
        asked="optimizer.step(), opt.step, 优化器",
    ),
    Place(
        "Optimizer of a run and its groups of parameters",
        "一次训练的优化器及其参数分组",
        "optimizer_of",
        "optim.py",
        "optimizer_of",
        asked="param_groups, parameter groups, configure_optimizers, get_optimizer, 参数组",
    ),
    Place(
        "Moving average of the weights",
        "权重的滑动平均",
        "averaged",
        "optim.py",
        "averaged",
        notations=(r"\bar\theta' = d \bar\theta + (1 - d) \theta",),
        asked="AveragedModel, update_ema, ema.update, get_ema_multi_avg_fn",
    ),
    Place(
        "Learning-rate schedule",
        "学习率调度",
        "learning_rate",
        "optim.py",
        "learning_rate",
        asked=(
            "lr_scheduler, get_lr, CosineAnnealingLR, LambdaLR, get_cosine_schedule_with_warmup, lr decay, "
            "warm-up, 预热, 学习率预热, 学习率衰减, 为什么要预热"
        ),
    ),
    Place(
        "Gradient clipping",
        "梯度裁剪",
        "clip_gradients",
        "optim.py",
        "clip_gradients",
        asked=(
            "torch.nn.utils.clip_grad_norm_, clip_grad_norm, max_grad_norm, exploding gradients, gradient norm, "
            "梯度爆炸, 梯度范数, 截断梯度"
        ),
    ),
    Place(
        "One training step",
        "一个训练步",
        "train",
        "train.py",
        "Trainer.update",
        ("train_gpt",),
        asked=(
            "Trainer.train, fit, training_step, epoch, how to train, one iteration, 训练过程, 怎么训练, 一次迭代, "
            "训练一步"
        ),
    ),
    Place(
        "Generation loop",
        "文本生成循环",
        "generate",
        "generation.py",
        "generate",
        ("generate",),
        asked=(
            "model.generate, torch.multinomial, multinomial, autoregressive, inference, max_new_tokens, "
            "text generation, next token, draw a token, how is text generated, 自回归, 推理, 生成文本, 逐个生成, "
            "怎么生成, 多项式采样"
        ),
    ),
    Place(
        "KV cache",
        "键值缓存",
        "kv_cache",
        "runtimes/tape/decoder.py",
        "KVCache",
        asked="past_key_values, use_cache, DynamicCache, caching keys and values, layer_past, KV缓存, 缓存键和值",
    ),
    Place(
        "Saving a checkpoint",
        "保存检查点",
        "save",
        "runs/checkpoint.py",
        "save",
        ("ckpt::save",),
        asked=(
            "torch.save, save_pretrained, safetensors, save weights, save the model, how to save a model, "
            "保存模型参数, 保存权重"
        ),
    ),
    Place(
        "Loading a checkpoint",
        "加载检查点",
        "load",
        "runs/checkpoint.py",
        "load",
        ("ckpt::load",),
        asked=(
            "torch.load, load_state_dict, from_pretrained, resume training, load weights, 加载模型, 恢复训练, "
            "继续训练, 断点续训"
        ),
    ),
    Place(
        "Initial weights",
        "权重的初始化",
        "initialization",
        "layers/parameter.py",
        "weight",
        asked=(
            "_init_weights, nn.init.normal_, initializer_range, Xavier, Kaiming, weight initialization, init, "
            "random weights, std 0.02, initial parameters, 初始化, 权重初始化, 参数初始化, 随机初始化"
        ),
    ),
    Place(
        "Clearing gradients",
        "清零梯度",
        "zero_grad",
        "model.py",
        "TinyGPT.zero_grad",
        asked=(
            "optimizer.zero_grad(), set_to_none, reset gradients, why zero the gradients, 梯度清零, 清空梯度, "
            "为什么要清零梯度"
        ),
    ),
    Place(
        "Evaluation on a text",
        "在文本上评估",
        "evaluate",
        "evaluate.py",
        "evaluate",
        asked=(
            "estimate_loss, validation loss, eval loss, test loss, evaluation, bits per byte, overfitting, "
            "验证损失, 评估, 测试损失, 过拟合"
        ),
    ),
    Place(
        "Tokenizer",
        "分词器",
        "tokenization",
        "tokenizers/tokenizer.py",
        "Tokenizer",
        asked=(
            "encode, decode, tokenization, tokenize, AutoTokenizer, byte tokenizer, ByteTokenizer, text to ids, "
            "分词, 编码, 字节级分词, 文本怎么变成数字"
        ),
    ),
    Place(
        "Byte-pair encoding",
        "字节对编码",
        "bpe",
        "tokenizers/bpe.py",
        "BytePairTokenizer",
        asked=(
            "byte-pair encoding, tiktoken, GPT2Tokenizer, merges.txt, vocab.json, tokenizer.json, subword, "
            "apply merges, 字节对编码, 子词, 应用合并"
        ),
    ),
    Place(
        "Training a tokenizer: the commonest pair becomes a token",
        "训练分词器：最常见的一对成为新词元",
        "bpe_training",
        "tokenizers/plain.py",
        "learn",
        asked=(
            "train a tokenizer, train BPE, learn merges, count pairs, merge, tie-break, rustbpe, minbpe, "
            "训练 BPE, 训练分词器, 训练词表, 合并, 统计相邻对, 次数相同时的规则"
        ),
    ),
    Place(
        "Pre-tokenization: a text is cut into words",
        "预分词：把文本切成词",
        "pre_tokenization",
        "tokenizers/splitting.py",
        "Split",
        asked=(
            "pre-tokenization, pre_tokenizer, regex split, pat_str, contractions, word boundaries, 预分词, "
            "预切分, 切词"
        ),
    ),
    Place(
        "Import of a model",
        "模型的导入",
        "import",
        "interop/exchange.py",
        "read",
        asked=(
            "load gpt2 weights, import a model, pretrained weights, load a Hugging Face model, AutoModelForCausalLM, "
            "safetensors to numpy, load a gguf, read a gguf, nanoGPT checkpoint, ckpt.pt, llm.c checkpoint, 导入, "
            "导入模型, 预训练权重, 加载预训练模型, 加载 GPT-2 权重"
        ),
    ),
    Place(
        "Export of a model",
        "模型的导出",
        "export",
        "interop/exchange.py",
        "write",
        asked=(
            "save_pretrained, export a model, convert to gguf, convert_hf_to_gguf, GGUF, llama.cpp, Ollama, "
            "push to hub, 导出, 导出模型, 转换为 GGUF, 转成 GGUF"
        ),
    ),
    Place(
        "Quantised numbers",
        "量化的数",
        "quantise",
        "interop/gguf/quantised.py",
        "quantised",
        asked="Q8_0, Q4_0, quantize, quantise, ggml, 4-bit weights, 8-bit weights, 量化权重",
    ),
    Place(
        "Tuning an imported model",
        "微调导入的模型",
        "tune",
        "cli/runs/tuning.py",
        "tuned",
        asked=(
            "fine-tune gpt2, fine-tune a pretrained model, init_from, finetune, continue pretraining, 微调, "
            "微调模型, 继续预训练"
        ),
    ),
)
