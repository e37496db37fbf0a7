"""The path through the book: its pages in reading order, each with the knowledge it needs and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.words.language import Words

ARITHMETIC = Words("arithmetic", "算术")
PYTHON = Words("Python", "Python")
FRAMEWORK = Words("having trained a model in a framework", "用框架训练模型的经验")


@dataclass(frozen=True)
class Stop:
    """A page of the path: its name in docs/guides, prior knowledge, earlier pages, minutes, outcome, next command.

    minutes  for the text that is not folded, with a few rows checked
    sheet  topic of the worksheets that practise it
    pencil  minutes with every row, the folded ones too, worked on paper; 0 where the page has no such rows
    """

    name: str
    needs: Words
    earlier: tuple[str, ...]
    minutes: int
    outcome: Words
    """The reader's new skill: completes "Afterwards you can ..." and "读完之后，你能……"."""
    command: str
    sheet: str = ""
    pencil: int = 0

    def command_in(self, lang: str) -> str:
        """Return the command as a reader of `en` or `zh` types it."""
        bilingual = self.command.startswith(("byhand work", "byhand where", "byhand explain"))
        return f"{self.command} --lang zh" if lang == "zh" and bilingual else self.command


PATH = (
    Stop(
        "matrix-core", ARITHMETIC, (), 120,
        Words(
            "say what a gradient is, and work through attention on two tokens with a pencil: scores, weights, "
            "output, loss, gradients, one update",
            "说清梯度是什么，并用纸笔算完两个词元的注意力：分数、权重、输出、损失、各个梯度和一次更新",
        ),
        "byhand work matrix-core --quiz", "cross-entropy", 180,
    ),
    Stop(
        "learn-by-hand", ARITHMETIC, ("matrix-core",), 160,
        Words(
            "follow four words through a whole GPT to the loss, and one weight from its gradient to its update",
            "从四个词出发，手算整个 GPT 直到损失，再求出一个权重的梯度并更新它",
        ),
        "byhand work paper-gpt --quiz", "full", 260,
    ),
    Stop(
        "backward-by-hand", ARITHMETIC, ("learn-by-hand",), 120,
        Words(
            "propagate the gradient of the loss back through a whole block, and update every weight once",
            "从损失出发，把梯度一步步传回整个块，并把每个权重更新一次",
        ),
        "byhand work paper-gpt --quiz --from 21", "backprop", 230,
    ),
    Stop(
        "multi-head-attention", ARITHMETIC, ("learn-by-hand",), 30,
        Words(
            "split an attention computation into heads and put the heads together again",
            "把注意力拆成多个头来算，再把各头拼回去",
        ),
        "byhand work multi-head --quiz", "attention",
    ),
    Stop(
        "attention-index", PYTHON, ("multi-head-attention",), 30,
        Words(
            "write attention scores as five loops, and find each number's place in memory",
            "用五重循环写出注意力分数，并找到每个数在内存中的位置",
        ),
        "byhand work attention-index --quiz",
    ),
    Stop(
        "training-and-generation", ARITHMETIC, ("learn-by-hand",), 60,
        Words(
            "say what each part of a training step is for, read a loss as bits and guesses, and choose how to sample",
            "说明训练中每一步的作用，把损失换算成比特和候选数，并选择采样设置",
        ),
        "byhand train --data python-stdlib --preset tiny --out runs/first", "adamw",
    ),
    Stop(
        "kv-cache", ARITHMETIC, ("learn-by-hand", "training-and-generation"), 30,
        Words(
            "say which numbers a new token needs from the earlier ones, and count the work that a cache saves",
            "说出新词元要用到先前词元的哪些数，并算出缓存省下多少计算",
        ),
        "byhand work kv-cache --quiz",
    ),
    Stop(
        "bpe", ARITHMETIC, ("learn-by-hand",), 30,
        Words(
            "learn a vocabulary on paper, encode a new word with it, and train a tokenizer on your own text",
            "用纸笔从文本学习词表，用它编码新词，并在自己的文本上训练分词器",
        ),
        "byhand work bpe --quiz",
    ),
    Stop(
        "autograd-and-memory", PYTHON, ("learn-by-hand",), 45,
        Words(
            "read a recorded graph, run the backward pass on it by hand, and check a derivative numerically",
            "读懂记录下来的计算图，在图上手动完成反向传播，并用有限差分检验导数",
        ),
        "byhand work memory-layout --quiz",
    ),
    Stop(
        "classifier", PYTHON, ("learn-by-hand", "autograd-and-memory"), 45,
        Words(
            "work through one update of a two-layer network, train it to read digits, and build one like it",
            "手算两层网络的一次更新，训练它识别数字，并仿照它搭建自己的网络",
        ),
        "byhand work classifier --quiz",
    ),
    Stop(
        "structures-to-math", PYTHON, ("learn-by-hand", "autograd-and-memory"), 40,
        Words(
            "name every parameter with its shape, and read each class as a piece of the decoder's mathematics",
            "说出每个参数及其形状，并指出每个类对应解码器数学的哪一部分",
        ),
        'byhand where "Q K V"',
    ),
    Stop(
        "equation-to-code", PYTHON, ("structures-to-math",), 30,
        Words(
            "go from any formula of a GPT to the line that computes it, and from any number to its arithmetic",
            "从 GPT 的任一公式找到计算它的那一行代码，从任一个数找到它的算式",
        ),
        'byhand explain runs/first --prompt "To be" "blocks.0.attn.weights[0,0,2,1]"',
    ),
    Stop(
        "reading-order", PYTHON, ("equation-to-code",), 90,
        Words(
            "read the package from one equation to the training loop, and set breakpoints where they help",
            "从一个公式一直读到训练循环，并用断点让调试器停在关键处",
        ),
        'byhand where "backward pass"',
    ),
    Stop(
        "design-choices", PYTHON, ("training-and-generation", "equation-to-code"), 60,
        Words(
            "justify each design choice of the model with a number, and say what other models choose",
            "用数字说明模型的每项设计选择，并说出其他模型的选择",
        ),
        "byhand train --data python-stdlib --preset tiny --norm-position post --activation relu --out runs/post",
    ),
    Stop(
        "model-family", PYTHON, ("design-choices", "kv-cache"), 40,
        Words(
            "say what GPT-2, Llama and Qwen3 choose, what each choice costs or saves, and train any of them",
            "说出 GPT-2、Llama、Qwen3 各选了什么、每项选择的代价与收益，并训练其中任何一种",
        ),
        "byhand train --preset llama --minutes 2 --data python-stdlib --out runs/llama",
    ),
    Stop(
        "fast-runtime", PYTHON, ("autograd-and-memory", "equation-to-code"), 30,
        Words(
            "say how the same equations become compiled loops, and measure what that gains on your machine",
            "说明同样的公式怎样变成编译好的循环，并在自己的机器上测出快了多少",
        ),
        "byhand plan",
    ),
    Stop(
        "many-hosts", FRAMEWORK, ("fast-runtime",), 60,
        Words(
            "say which device holds which part of an array, what is sent in a step, and start a run on two hosts",
            "说出哪台设备持有数组的哪一部分、一步训练要传输什么，并在两台主机上启动训练",
        ),
        "byhand train --preset tiny --steps 50 --mesh data=2 --out runs/one",
    ),
    Stop(
        "exchange", FRAMEWORK, ("structures-to-math",), 30,
        Words(
            "move a model between byhand, Hugging Face and llama.cpp, and name what must be transposed or permuted",
            "在本项目、Hugging Face 与 llama.cpp 之间转换模型，并说出哪些张量要转置或重排",
        ),
        "byhand export runs/llama --to hf --out exported",
    ),
)  # fmt: skip
"""Every page of the path, in order; `path` and `onward` blocks stand on each of them."""

STOPS = {stop.name: stop for stop in PATH}
