"""Titles of the definitions that pages point at, for those that are neither equations nor places of `where`."""

from byhand.book.words.language import Words

LINES = """
architectures.py:ARCHITECTURES | Architectures by name | 各架构的设置
engine/backward.py:applications | Applications in the order recorded | 按记录次序列出的运算
engine/backward.py:walk_back | The reverse walk over the graph | 沿计算图反向遍历
engine/equation.py:Equation | An equation and its derivative | 一个公式及其导数
engine/interpreter.py:Record | Computing and recording | 计算并记录
files/parts.py:Assembly | Assembling an array from its parts | 拼合数组的各部分
host.py:normal | Random numbers, the same on every machine | 各台机器相同的随机数
interop/families.py:family_of | Choosing a family | 选择模型系列
interop/gguf/model.py:files | Writing a GGUF | 写出 GGUF
interop/hugging_face/folder.py:read | Reading a Hugging Face folder | 读取 Hugging Face 文件夹
interop/pairing.py:column_order | Columns of a head in either pairing | 一个头的各列在两种配对下的次序
interop/tensors.py:pieces | Which tensors make an array | 一个数组由哪些张量组成
layers/block.py:Block | A block: its norms and sublayers | 块：归一化与子层
layers/embeddings.py:PositionEmbedding | Positional embeddings | 位置嵌入
layers/head.py:LMHead | LM head | 语言模型头
layers/attention.py:SelfAttention | Attention with all its choices | 带各项选择的注意力
layers/mlp.py:MLP | The MLP, with or without a gate | 前馈网络，带或不带门控
layers/norm.py:LayerNorm | LayerNorm of a model | 模型中的层归一化
layers/norm.py:RMSNorm | RMSNorm of a model | 模型中的均方根归一化
layers/parameter.py:Parameter | A parameter: shape, axes, initialization | 参数：形状、轴与初始化
layers/parameter.py:STD | Standard deviation of initial weights | 初始权重的标准差
layers/parameter.py:residual_std | Standard deviation of weights that write to the stream | 写入残差流的权重的标准差
layers/parameter.py:zeros | Initial biases | 初始偏置
model.py:Layers | The model as a list of layers | 由各层组成的模型
model.py:TinyGPT.decode | Logits with a cache, and the next cache | 借助缓存计算 logits，并返回下一个缓存
model.py:TinyGPT.forward | Wiring of the forward pass | 前向传播的连接
model.py:TinyGPT.loss_of | Forward pass and loss | 前向传播与损失
optim.py:Optimizer.clipped_step | Clipping and update of all parameters | 裁剪梯度并更新全部参数
optim.py:Optimizer | Parameters, each updated by its rule | 各参数按自己的规则更新
clipping.py:gradient_norm | Norm of all gradients together | 全部梯度合起来的范数
optim.py:updated | Update of all parameters | 更新全部参数
runtimes/process_group.py:ProcessGroup | Communication between hosts | 主机之间的通信
engine/graph/record.py:record | Recording a step once | 把一步记录一次
runtimes/loops/program/builder.py:Builder | From equations to kernels | 从公式到内核
runtimes/loops/lower/fusion.py:groups_of | Which equations run as one kernel | 哪些公式合成一个内核
runtimes/loops/run/replay.py:replay | Running a recorded step | 执行记录好的一步
runtimes/loops/run/thread_team.py:ThreadTeam | Threads that share a step | 分担一步的各个线程
runtimes/sampling.py:draw | Drawing a token | 抽取词元
runtimes/xla/gradients.py:loss_and_gradients | Loss and gradients on the devices | 各设备上的损失与梯度
runtimes/xla/joining.py:join | Joining the other hosts | 加入其他主机
runtimes/xla/layout.py:Layout | Placement of each array | 每个数组放在哪里
runtimes/xla/layout.py:Layout.own | The parts that this host holds | 本主机持有的部分
runtimes/xla/mesh.py:Mesh.own_rows | The rows of a batch that a host reads | 主机读取批次的哪些行
runtimes/xla/mesh.py:SHARDED | Axes of a mesh and the data that they divide | 设备网格的轴与各自切分的数据
runtimes/xla/placing.py:least_sent | The least number of bytes to send | 至少要传输多少字节
runtimes/xla/placing.py:part_shape | The shape of a device's part | 设备持有部分的形状
runtimes/xla/placing.py:spec_of | The axes that share an array | 分摊数组的各个轴
runtimes/xla/step.py:traced_step | A training step as JAX traces it | JAX 追踪的一步训练
runtimes/xla/watch.py:Watch | Detecting a lost host | 发现主机失联
tokenizers/byte.py:ByteTokenizer | Bytes as tokens | 以字节为词元
"""


def _definition(line: str) -> tuple[str, Words]:
    place, en, zh = line.split(" | ")
    return place, Words(en, zh)


DEFINITIONS = dict(map(_definition, LINES.strip().splitlines()))
