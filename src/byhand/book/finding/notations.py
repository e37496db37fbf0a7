r"""Other ways in which textbooks, papers and programs write the same equations, so that any spelling finds them.

An equation's own LaTeX is in its file; here stand only variants of it, in LaTeX or plain text, by stem or place.
"""

SETTINGS = {"beta1": r"\beta_1", "beta2": r"\beta_2", "eps": r"\epsilon", "weight_decay": r"\lambda", "tau": r"\tau"}
"""The symbol of a setting whose name in code is another."""

NOTATIONS: dict[str, tuple[str, ...]] = {
    "embedding": (
        r"E_{i} = W_{te}[t_{i}]",
        r"X = W_{te}[tokens] + W_{pe}[pos]",
        "W_E[x]",
        "X[i]",
        r"W_{te} \in \mathbb{R}^{V \times C}",
    ),
    "add_positional": (
        r"X_{i} = E_{i} + W_{pe}[i]",
        r"X = W_{te}[tokens] + W_{pe}[pos]",
        "x = tok_emb + pos_emb",
        r"W_{pe} \in \mathbb{R}^{T_{max} \times C}",
    ),
    "layer_norm": (
        "LN(x)",
        r"H = \mathrm{LN}(X)",
        r"M = \mathrm{LN}(X)",
        r"X_n = \mathrm{LN}(X)",
        r"\mathrm{LN}(x)_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}",
        "(x - mean) / sqrt(var + eps)",
        "y = gamma * (x - E[x]) / sqrt(Var[x] + eps) + beta",
    ),
    "residual": (
        r"X = X + A",
        r"X \leftarrow X + O",
        "X = X + FF",
        r"X \leftarrow X + \mathrm{MLP}(\mathrm{LN}(X))",
        "y = x + f(x)",
        "x + Sublayer(x)",
    ),
    "gelu": (
        r"F = \mathrm{GELU}(M W_{fc} + b_{fc})",
        "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
        r"x \Phi(x)",
    ),
    "relu": ("max(0, x)", r"F = \mathrm{ReLU}(M W_{fc} + b_{fc})"),
    "linear": (
        "X W + b",
        r"O = F W_{out} + b_{out}",
        r"Z = X_n W_{lm} + b_{lm}",
        r"Z = \mathrm{LN}(X) W_{lm} + b_{lm}",
        r"logits = \mathrm{LN}(X) W_{lm} + b_{lm}",
        r"A = Y W_{proj} + b_{proj}",
        "A = Y W_o + b_o",
        "Q = X W_Q",
        "K = X W_K",
        "V = X W_V",
        "dL/dW = X^T dL/dY",
        "dL/dW_V = X^T dL/dV",
        r"M W_{fc} + b_{fc}",
        r"\mathrm{GELU}(M W_{fc} + b_{fc})",
    ),
    "split_qkv": (r"W_{qkv} = [W_q W_k W_v]", "q, k, v = split(qkv)", r"b_{qkv} = [b_q b_k b_v]"),
    "causal_self_attention": (
        "Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V",
        r"A = \mathrm{CausalSelfAttn}(H)",
        r"[Q, K, V] = X W_{qkv} + b_{qkv}",
        r"[Q, K, V] = H W_{qkv} + b_{qkv}",
        "softmax(Q K^T / sqrt(d)) V",
        "A = softmax(Q K^T / sqrt(d)) V",
    ),
    "attention_scores": (
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}}",
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}} + mask(i, j)",
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}} + \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}",
        "Scores = Q K^T",
        "q @ k.T",
        "Q K^T / sqrt(d_k)",
        "Scaled = Scores / sqrt(d_k)",
    ),
    "causal_softmax": (
        r"P_i = \mathrm{softmax}(S_i)",
        r"mask(i, j) = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}",
        r"S_{i,j} = -\infty",
        "if j > i: s = -1e9",
    ),
    "softmax": (
        "exp(x) / sum exp(x)",
        "softmax(x)",
        r"p_v = \mathrm{softmax}(z)_v",
        r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
    ),
    "mix": (
        r"Y_i = \sum_j P_{i,j} V_j",
        "Output = Attention_Weights V",
        "Weights V",
        "dL/dV = Attention^T dL/dOutput",
        r"\sum_j P_{i,j} V_j",
    ),
    "cross_entropy": (
        r"L = \frac{1}{N} \sum_n \ell_n",
        r"\ell_n = -\log(p_{n,y_n})",
        r"-\log p_y",
        "Loss = -sum y_true log(y_pred)",
        "-sum y log(p)",
        r"L = \frac{1}{N} \sum_n -\log(\mathrm{softmax}(logits_n)[y_n])",
        "dL/dOutput = y_pred - y_true",
        "p - onehot(y)",
    ),
    "adamw": (
        r"\theta_{t} = \theta_{t-1} - \alpha \hat m_t / (\sqrt{\hat v_t} + \epsilon)",
        "W_new = W - learning_rate dL/dW",
        "W_V_new = W_V - learning_rate dL/dW_V",
        "w = w - lr * grad",
    ),
    "temperature": ("logits / temp", "softmax(z / T)"),
    "matmul": ("X W", "C = A B", r"(AB)_{ij} = \sum_k a_{ik} b_{kj}"),
    "reshape": ("(b T + t) C + c", "[B,T,V] -> [N,V]", "N = B T"),
    "merge_heads": ("Concat(head_1, ..., head_h)",),
    "sample_batch": (r"y_t = x_{t+1}", r"x_t = bytes[s + t]", "y_t = bytes[s + t + 1]"),
    "block": (
        "x = LN(x + f(x))",
        r"H = \mathrm{LN}(X), A = \mathrm{CausalSelfAttn}(H), X = X + A, M = \mathrm{LN}(X), "
        r"FF = \mathrm{MLP}(M), X = X + FF",
    ),
    "mlp": (
        r"FF = \mathrm{MLP}(M)",
        r"F = \mathrm{GELU}(M W_{fc} + b_{fc}), FF = F W_{out} + b_{out}",
        r"F W_{out}",
        "W_2 max(0, W_1 x + b_1) + b_2",
    ),
    "forward_logits": (
        r"logits = \mathrm{LN}(X) W_{lm} + b_{lm}",
        r"X_n = \mathrm{LN}(X), Z = X_n W_{lm} + b_{lm}",
        "logits = forward_logits(x)",
    ),
    "backward": ("loss.backward()", r"\frac{dL}{dx} = \frac{dL}{dy} \frac{dy}{dx}"),
    "optimizer": ("opt.step(params)",),
    "loss": ("loss = cross_entropy(logits, y)",),
}
