"""The original program again, straight from its description and without byhand: the reference for ours."""

import math

import numpy as np

WORD = 2**64 - 1
f32 = np.float32


class Xorshift:
    def __init__(self, seed):
        self.x = seed if seed else 0x12345678

    def u32(self):
        self.x ^= self.x >> 12
        self.x = (self.x ^ (self.x << 25)) & WORD
        self.x ^= self.x >> 27
        return (self.x * 2685821657736338717 & WORD) >> 32

    def unit(self):
        return f32(self.u32() >> 8) / f32(2**24)

    def between(self, low, high):
        return low + self.u32() % (high - low + 1)


def normal_array(seed, shape, std):
    g, values = Xorshift(seed), []
    while len(values) < math.prod(shape):
        u1, u2 = max(g.unit(), f32(1e-7)), g.unit()
        r = np.sqrt(f32(-2) * f32(math.log(u1)))
        angle = float(f32(2) * f32(3.1415926535) * u2)
        values += [r * f32(math.cos(angle)) * f32(std), r * f32(math.sin(angle)) * f32(std)]
    return np.array(values[: math.prod(shape)], f32).reshape(shape)


def initial(seed, vocab, t, c, layers):
    std, std_out = 1 / math.sqrt(c), 1 / math.sqrt(4 * c)
    p = {"wte": normal_array(seed ^ 0xA11CE, (vocab, c), std), "wpe": normal_array(seed ^ 0xBEEF, (t, c), std)}
    for i in range(layers):
        s = seed ^ (0x1000 + i * 0x9E3779B97F4A7C15 & WORD)
        shapes = (("attn.w_qkv", (c, 3 * c), std), ("attn.w_proj", (c, c), std))
        shapes += (("mlp.w_fc", (c, 4 * c), std), ("mlp.w_out", (4 * c, c), std_out))
        for salt, (name, shape, scale) in enumerate(shapes, 1):
            p[f"blocks.{i}.{name}"] = normal_array(s ^ salt, shape, scale)
            p[f"blocks.{i}.{name.replace('w_', 'b_')}"] = np.zeros(shape[1], f32)
    p["lm_head.w"], p["lm_head.b"] = normal_array(seed ^ 0xC0FFEE, (c, vocab), std), np.zeros(vocab, f32)
    return p


def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + f32(1e-5))
    return centred * r, r


def norm_back(d, xhat, r):
    return r * (d - d.mean(-1, keepdims=True) - xhat * (d * xhat).mean(-1, keepdims=True))


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def loss_and_gradients(p, layers, tokens, targets):
    b, t = tokens.shape
    c = p["wte"].shape[1]
    scale, k, cubic = f32(1 / math.sqrt(c)), f32(math.sqrt(2 / math.pi)), f32(0.044715)
    x = p["wte"][tokens] + p["wpe"][:t]
    kept = []
    for i in range(layers):
        w = {n: p[f"blocks.{i}.{n}"] for n in ("attn.w_qkv", "attn.w_proj", "mlp.w_fc", "mlp.w_out")}
        bias = {n: p[f"blocks.{i}.{n}"] for n in ("attn.b_qkv", "attn.b_proj", "mlp.b_fc", "mlp.b_out")}
        h1, r1 = norm(x)
        q, key, v = np.split(h1 @ w["attn.w_qkv"] + bias["attn.b_qkv"], 3, -1)
        scores = q @ key.transpose(0, 2, 1) * scale
        weights = softmax(np.where(np.tril(np.ones((t, t), bool)), scores, f32(-1e9)))
        mixed = weights @ v
        x = x + mixed @ w["attn.w_proj"] + bias["attn.b_proj"]
        h2, r2 = norm(x)
        pre = h2 @ w["mlp.w_fc"] + bias["mlp.b_fc"]
        tanh = np.tanh(k * (pre + cubic * pre**3))
        act = f32(0.5) * pre * (1 + tanh)
        x = x + act @ w["mlp.w_out"] + bias["mlp.b_out"]
        kept.append((w, h1, r1, q, key, v, weights, mixed, h2, r2, pre, tanh, act))
    h, r = norm(x)
    probabilities = softmax(h @ p["lm_head.w"] + p["lm_head.b"])
    rows, columns = np.indices(tokens.shape)
    loss = -np.log(probabilities[rows, columns, targets]).mean()

    def flat(array):
        return array.reshape(-1, array.shape[-1])

    g = {}
    d = probabilities.copy()
    d[rows, columns, targets] -= 1
    d /= f32(b * t)
    g["lm_head.w"], g["lm_head.b"] = flat(h).T @ flat(d), flat(d).sum(0)
    d = norm_back(d @ p["lm_head.w"].T, h, r)
    for i in reversed(range(layers)):
        w, h1, r1, q, key, v, weights, mixed, h2, r2, pre, tanh, act = kept[i]
        g[f"blocks.{i}.mlp.w_out"], g[f"blocks.{i}.mlp.b_out"] = flat(act).T @ flat(d), flat(d).sum(0)
        slope = f32(0.5) * (1 + tanh) + f32(0.5) * pre * (1 - tanh**2) * k * (1 + 3 * cubic * pre**2)
        d_pre = d @ w["mlp.w_out"].T * slope
        g[f"blocks.{i}.mlp.w_fc"], g[f"blocks.{i}.mlp.b_fc"] = flat(h2).T @ flat(d_pre), flat(d_pre).sum(0)
        d = d + norm_back(d_pre @ w["mlp.w_fc"].T, h2, r2)
        g[f"blocks.{i}.attn.w_proj"], g[f"blocks.{i}.attn.b_proj"] = flat(mixed).T @ flat(d), flat(d).sum(0)
        d_mixed = d @ w["attn.w_proj"].T
        d_weights = d_mixed @ v.transpose(0, 2, 1)
        d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdims=True)) * scale
        parts = (d_scores @ key, d_scores.transpose(0, 2, 1) @ q, weights.transpose(0, 2, 1) @ d_mixed)
        d_qkv = np.concatenate(parts, -1)
        g[f"blocks.{i}.attn.w_qkv"], g[f"blocks.{i}.attn.b_qkv"] = flat(h1).T @ flat(d_qkv), flat(d_qkv).sum(0)
        d = d + norm_back(d_qkv @ w["attn.w_qkv"].T, h1, r1)
    g["wte"], g["wpe"] = np.zeros_like(p["wte"]), np.zeros_like(p["wpe"])
    np.add.at(g["wte"], tokens, d)
    g["wpe"][:t] = d.sum(0)
    return loss, g


def run(text, steps, batch, t, c, layers, lr, seed):
    """Return the losses before each update, and the parameters after the last."""
    p = initial(seed, 256, t, c, layers)
    batches = Xorshift(seed ^ 0xDEADBEEF)
    m, v = ({n: np.zeros_like(a) for n, a in p.items()} for _ in range(2))
    beta1, beta2, lr, eps, decay = f32(0.9), f32(0.999), f32(lr), f32(1e-8), f32(0.01)
    losses = []
    for step in range(1, steps + 1):
        starts = [batches.between(0, len(text) - t - 1) for _ in range(batch)]
        windows = np.array([list(text[s : s + t + 1]) for s in starts])
        loss, g = loss_and_gradients(p, layers, windows[:, :-1], windows[:, 1:])
        losses.append(float(loss))
        for n in p:
            m[n] = beta1 * m[n] + (1 - beta1) * g[n]
            v[n] = beta2 * v[n] + (1 - beta2) * g[n] ** 2
            mhat, vhat = m[n] / (1 - beta1**step), v[n] / (1 - beta2**step)
            p[n] = p[n] - lr * (mhat / (np.sqrt(vhat) + eps) + decay * p[n])
            assert p[n].dtype == np.float32
    return losses, p
