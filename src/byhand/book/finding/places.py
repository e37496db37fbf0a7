"""Places besides equations that readers search for: the code that wires, records, trains and stores."""

from __future__ import annotations

from pathlib import Path

from byhand.book.finding import source
from byhand.book.finding.finding import Finding, split
from byhand.book.words.language import Words
from byhand.book.words.tables import rows

# name | English | Chinese | file of the package:definition
#     seed: its names in the original program
#     formula: its computation as formulas write it
#     names in other programs and questions, separated by commas; a line indented twice continues the one above it
TABLE = r"""
# The model, the tape, the optimizer
sample_batch | Batch of next-token pairs | 下一词元预测的批次 | corpus/dataset.py:Corpus.sample_batch
    seed: data::ByteDataset::sample_batch, data::ByteDataset
    formula: y_t = x_{t+1}
    formula: x_t = bytes[s + t]
    formula: y_t = bytes[s + t + 1]
    get_batch, DataLoader, torch.utils.data.Dataset, teacher forcing, shift the labels, labels, targets, inputs and
    targets, training pairs, 训练样本, 数据加载, 输入和目标, 标签右移, 数据怎么切成批次, 教师强制
config | Hyperparameters of a model | 模型超参数 | model_config.py:ModelConfig
    seed: model::Config
    GPTConfig, GPT2Config, AutoConfig, settings of the model, 配置, 模型设置
model | The model and its parameters | 模型及其参数 | model.py:TinyGPT
    seed: model::TinyGPT
    nn.Module, GPT2LMHeadModel, model.parameters(), named_parameters, nn.Parameter, state_dict, number of parameters,
    parameter count, how many parameters, model size, 参数量, 参数个数, 多少参数, 模型大小, 可学习参数
forward_logits | Decoder forward pass | 解码器前向传播 | model.py:TinyGPT.forward_logits
    seed: model::TinyGPT::forward_logits
    formula: logits = \mathrm{LN}(X) W_{lm} + b_{lm}
    formula: X_n = \mathrm{LN}(X), Z = X_n W_{lm} + b_{lm}
    formula: logits = forward_logits(x)
    forward, model.forward, language model, causal language model, hidden states, 语言模型, 隐藏状态, 前向计算
block | Transformer block | Transformer 块 | layers/block.py:Block.apply
    formula: x = LN(x + f(x))
    formula: H = \mathrm{LN}(X), A = \mathrm{CausalSelfAttn}(H), X = X + A, M = \mathrm{LN}(X), FF = \mathrm{MLP}(M),
        X = X + FF
    GPT2Block, DecoderLayer, nn.TransformerEncoderLayer, transformer layer, encoder layer, one layer, Transformer 层,
    一层
mlp | Feed-forward network (MLP) | 前馈网络（MLP） | layers/mlp.py:MLP.apply
    formula: FF = \mathrm{MLP}(M)
    formula: F = \mathrm{GELU}(M W_{fc} + b_{fc}), FF = F W_{out} + b_{out}
    formula: F W_{out}
    formula: W_2 max(0, W_1 x + b_1) + b_2
    GPT2MLP, c_fc, up_proj, down_proj, fc1, fc2, position-wise feed-forward, 前馈层
lm_head | LM head | 语言模型头 | layers/head.py:LMHead.apply
    formula: Z = X_n W_{lm} + b_{lm}
    formula: logits = X W_{lm} + b_{lm}
    lm_head, LMHead, output layer, output head, unembed, 输出层, 语言模型头
loss | Loss of a batch | 批次的损失 | model.py:TinyGPT.loss
    seed: model::TinyGPT::loss
    formula: loss = cross_entropy(logits, y)
    criterion, loss function, compute the loss, 计算损失
tensor | Tensor | 张量 | engine/tensor.py:Tensor
    seed: nn::Tensor
    torch.Tensor, requires_grad, ndarray, .grad, 梯度存在哪里
node | Node of the recorded graph | 计算图的节点 | engine/node.py:Node
    seed: nn::Node
    grad_fn, autograd graph, dynamic graph, tape, 动态图
backward | Backpropagation | 反向传播 | engine/backward.py:backward
    seed: nn::Tensor::backward
    formula: loss.backward()
    formula: \frac{dL}{dx} = \frac{dL}{dy} \frac{dy}{dx}
    loss.backward(), torch.autograd.grad, backprop, how are gradients computed, vjp, vector-Jacobian product,
    Jacobian, derivative, 求导, 导数, 误差反向传播, 雅可比, 梯度怎么算, 反向传播怎么推导
no_grad | Computing without recording | 不记录梯度 | engine/interpreter.py:no_grad
    seed: GradMode
    torch.no_grad, torch.inference_mode, model.eval(), detach, requires_grad_(False), 关闭梯度, 停止梯度
gradcheck | Gradient check | 梯度检验 | engine/gradcheck.py:gradcheck
    torch.autograd.gradcheck, numerical gradient, are my gradients right, 检查梯度, 梯度对不对
optimizer_step | Optimizer step | 优化器的一步 | optim.py:Optimizer.step
    formula: opt.step(params)
    optimizer.step(), opt.step, 优化器
update_rule | Update rule of a parameter, by its group | 按分组选定的参数更新规则 | update_rules.py:rule_of
    param_groups, parameter groups, configure_optimizers, get_optimizer, 参数组
averaged | Moving average of the weights | 权重的滑动平均 | optim.py:averaged
    formula: \bar\theta' = d \bar\theta + (1 - d) \theta
    AveragedModel, update_ema, ema.update, get_ema_multi_avg_fn
learning_rate | Learning-rate schedule | 学习率调度 | schedule.py:learning_rate
    lr_scheduler, get_lr, CosineAnnealingLR, LambdaLR, get_cosine_schedule_with_warmup, lr decay, warm-up, 预热,
    学习率预热, 学习率衰减, 为什么要预热
clip_gradients | Gradient clipping | 梯度裁剪 | clipping.py:clip_gradients
    torch.nn.utils.clip_grad_norm_, clip_grad_norm, max_grad_norm, exploding gradients, gradient norm, 梯度爆炸,
    梯度范数, 截断梯度
# Runs, tokens, models of other programs
train | One training step | 一个训练步 | runs/trainer.py:Trainer.update
    seed: train_gpt
    Trainer.train, fit, training_step, epoch, how to train, one iteration, 训练过程, 怎么训练, 一次迭代, 训练一步
generate | Generation loop | 文本生成循环 | generation/text.py:generate
    seed: generate
    model.generate, torch.multinomial, multinomial, autoregressive, inference, max_new_tokens, text generation, next
    token, draw a token, how is text generated, 自回归, 推理, 生成文本, 逐个生成, 怎么生成, 多项式采样
kv_cache | KV cache | 键值缓存 | layers/cache.py:KVCache
    past_key_values, use_cache, DynamicCache, caching keys and values, layer_past, KV缓存, 缓存键和值
save | Saving a checkpoint | 保存检查点 | runs/checkpoint.py:save
    seed: ckpt::save
    torch.save, save_pretrained, safetensors, save weights, save the model, how to save a model, 保存模型参数,
    保存权重
load | Loading a checkpoint | 加载检查点 | runs/checkpoint.py:load
    seed: ckpt::load
    torch.load, load_state_dict, from_pretrained, resume training, load weights, 加载模型, 恢复训练, 继续训练,
    断点续训
initialization | Initial weights | 权重的初始化 | layers/parameter.py:weight
    _init_weights, nn.init.normal_, initializer_range, Xavier, Kaiming, weight initialization, init, random weights,
    std 0.02, initial parameters, 初始化, 权重初始化, 参数初始化, 随机初始化
zero_grad | Clearing gradients | 清零梯度 | model.py:TinyGPT.zero_grad
    optimizer.zero_grad(), set_to_none, reset gradients, why zero the gradients, 梯度清零, 清空梯度, 为什么要清零梯度
evaluate | Evaluation on a text | 在文本上评估 | evaluate.py:evaluate
    estimate_loss, validation loss, eval loss, test loss, evaluation, bits per byte, overfitting, 验证损失, 评估,
    测试损失, 过拟合
choices | Multiple choice by log-likelihood | 按对数似然做选择题 | choices.py:choose
    HellaSwag, ARC, multiple choice, lm-evaluation-harness, acc_norm, 选择题
memory | What a run takes of the memory | 训练占用多少内存 | memory.py:run_bytes
    out of memory, OOM, CUDA out of memory, how much memory, memory usage, micro-batch that fits, 内存不足, 显存不足,
    显存占用, 内存占用
tokenization | Tokenizer | 分词器 | tokenizers/tokenizer.py:Tokenizer
    encode, decode, tokenization, tokenize, AutoTokenizer, byte tokenizer, ByteTokenizer, text to ids, 分词, 编码,
    字节级分词, 文本怎么变成数字
bpe | Byte-pair encoding | 字节对编码 | tokenizers/bpe.py:BytePairTokenizer
    byte-pair encoding, tiktoken, GPT2Tokenizer, merges.txt, vocab.json, tokenizer.json, subword, apply merges,
    字节对编码, 子词, 应用合并
sentencepiece | SentencePiece's tokens | SentencePiece 词元 | tokenizers/sentencepiece.py:SentencePieceTokenizer
    SentencePiece, byte fallback, byte_fallback, tokenizer.model, LlamaTokenizer, add_dummy_prefix, add_space_prefix,
    Metaspace, ▁, 字节回退
special_tokens | Tokens that begin and end a text | 文本的起始与结束词元 | tokenizers/conventions.py:Conventions
    EOS, BOS, eos_token_id, bos_token, end of text, <|endoftext|>, add_bos_token, generation_config, special tokens,
    特殊词元, 结束符, 起始符, 终止词元
chat_template | Chat templates | 对话模板 | conversations/formats.py:Chat
    apply_chat_template, chat template, ChatML, <|im_start|>, add_generation_prompt, Jinja, 对话格式, 聊天模板
bpe_training | Training a tokenizer: the commonest pair becomes a token | 训练分词器：最常见的一对成为新词元 |
        tokenizers/plain.py:learn
    train a tokenizer, train BPE, learn merges, count pairs, merge, tie-break, rustbpe, minbpe, 训练 BPE, 训练分词器,
    训练词表, 合并, 统计相邻对, 次数相同时的规则
pre_tokenization | Pre-tokenization: a text is cut into words | 预分词：把文本切成词 | tokenizers/splitting.py:Split
    pre-tokenization, pre_tokenizer, regex split, pat_str, contractions, word boundaries, 预分词, 预切分, 切词
import | Import of a model | 模型的导入 | interop/exchange.py:read
    load gpt2 weights, import a model, pretrained weights, load a Hugging Face model, AutoModelForCausalLM,
    safetensors to numpy, load a gguf, read a gguf, nanoGPT checkpoint, ckpt.pt, llm.c checkpoint, 导入, 导入模型,
    预训练权重, 加载预训练模型, 加载 GPT-2 权重
export | Export of a model | 模型的导出 | interop/exchange.py:write
    save_pretrained, export a model, convert to gguf, convert_hf_to_gguf, GGUF, llama.cpp, Ollama, push to hub, 导出,
    导出模型, 转换为 GGUF, 转成 GGUF
quantise | Quantised numbers | 量化的数 | formats/blocks.py:to_q8_0
    Q8_0, Q4_0, Q4_K_M, Q5_K_M, GGUF types, quantize, quantise, outtype, ggml, 4-bit weights, 8-bit weights, 量化权重
tune | Tuning an imported model | 微调导入的模型 | cli/runs/tuning.py:tuned
    fine-tune gpt2, fine-tune a pretrained model, init_from, finetune, continue pretraining, 微调, 微调模型,
    继续预训练
"""


def _place(head: str, *lines: str) -> Finding:
    name, en, zh, code = head.split(" | ")
    file, _, definition = code.partition(":")
    path = Path(file)
    seeds = "".join(line.removeprefix("seed: ") for line in lines if line.startswith("seed: "))
    asked = " ".join(line for line in lines if not line.startswith(("seed: ", "formula: ")))
    return Finding(
        name=name,
        title=Words(en, zh),
        kind="place",
        asked=split(asked),
        code=(source.PACKAGE / file, definition),
        tests=(f"tests/test_{path.stem}.py", f"tests/{path.parent}/test_{path.name}"),
        seed_names=split(seeds),
        notations=tuple(line.removeprefix("formula: ") for line in lines if line.startswith("formula: ")),
    )


PLACES = tuple(_place(*lines) for _, lines in rows(TABLE))
