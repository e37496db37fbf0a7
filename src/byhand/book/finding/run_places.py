"""Places that readers search for, besides equations: runs, tokens, and models of other programs."""

from byhand.book.finding.place import Place

RUN_PLACES = (
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
