"""Places that readers search for, besides equations: the model, the tape, the optimizer."""

from byhand.book.finding.place import Place

MODEL_PLACES = (
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
        "schedule.py",
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
        "clipping.py",
        "clip_gradients",
        asked=(
            "torch.nn.utils.clip_grad_norm_, clip_grad_norm, max_grad_norm, exploding gradients, gradient norm, "
            "梯度爆炸, 梯度范数, 截断梯度"
        ),
    ),
)
