r"""AdamW's update: a step along the smoothed gradient, normalised by its size, with decoupled weight decay.

Equation    m' = beta1 m + (1 - beta1) g,   v' = beta2 v + (1 - beta2) g^2,
            theta' = theta - lr (mhat / (sqrt(vhat) + eps) + wd theta),
            mhat = m' / (1 - beta1^t),   vhat = v' / (1 - beta2^t),   wd = weight_decay
Derivative  with s = sqrt(vhat) + eps and w = -lr d_theta':  d_theta = (1 - lr wd) d_theta',
            d_m' += w / (s (1 - beta1^t)),   d_v' += -w mhat / (2 s^2 sqrt(vhat) (1 - beta2^t)),
            d_g = (1 - beta1) d_m' + 2 (1 - beta2) g d_v',   d_m = beta1 d_m',   d_v = beta2 d_v',
            d_lr = -sum of d_theta' (mhat / s + wd theta)
Shapes      theta, g, m, v the same shape; lr and t scalars -> theta', m', v'
Units       t counts steps from 1; the decay is scaled by lr, as in PyTorch
Raises      ShapeError if the shapes differ
Source      Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import element, function, number, product, ratio, total


def forward(theta, g, m, v, lr, t, *, beta1, beta2, eps, weight_decay):
    """Return the new parameter and the new moments; nothing is modified."""
    require(
        theta.shape == g.shape == m.shape == v.shape,
        f"adamw: theta {theta.shape}, g {g.shape}, m {m.shape} and v {v.shape} must have one shape",
    )
    xp = namespace(theta)
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * (g * g)
    correct_m, correct_v = corrections(theta, t, beta1, beta2)
    direction = (m / correct_m) / (xp.sqrt(v / correct_v) + eps)
    return (theta - lr * (direction + weight_decay * theta), m, v), (theta, g, m, v, lr, t)


def corrections(theta, t, beta1, beta2):
    """Return 1 - beta^t for both averages, in theta's precision even if t is an array."""
    xp = namespace(theta)
    return (xp.asarray(1.0 - beta**t, dtype=theta.dtype) for beta in (beta1, beta2))


def vjp(saved, d_results, *, beta1, beta2, eps, weight_decay):
    """Propagate through the step, then through the two moving averages."""
    theta, g, m, v, lr, t = saved
    d_theta, d_m, d_v = d_results
    xp = namespace(theta)
    correct_m, correct_v = corrections(theta, t, beta1, beta2)
    m_hat, root = m / correct_m, xp.sqrt(v / correct_v)
    scale = root + eps
    w = -lr * d_theta
    d_m = d_m + w / (scale * correct_m)
    root_or_one = xp.where(root == 0, xp.ones_like(root), root)  # v = 0 means g = 0: use slope 0
    d_v = d_v - xp.where(root == 0, xp.zeros_like(w), w * m_hat / (2.0 * scale * scale * root_or_one * correct_v))
    d_g = (1.0 - beta1) * d_m + 2.0 * (1.0 - beta2) * g * d_v
    d_lr = xp.asarray(-xp.sum(d_theta * (m_hat / scale + weight_decay * theta)))
    return d_theta * (1.0 - lr * weight_decay), d_g, beta1 * d_m, beta2 * d_v, d_lr, None


def terms(index, inputs, result, *, beta1, beta2, eps, weight_decay, which=0):
    """Old value, minus lr times (corrected mean over corrected root, plus decay); or m' (which = 1) or v' (2)."""
    theta, g, m, v = (element(inputs, k, index, name) for k, name in enumerate(("theta", "g", "m", "v")))
    lr, t = number(inputs[4], "lr"), int(inputs[5])
    new_m = total((product((number(beta1, "beta1"), m)), product((number(1 - beta1, "1 − beta1"), g))), "m'")
    new_v = total((product((number(beta2, "beta2"), v)), product((number(1 - beta2, "1 − beta2"), g, g))), "v'")
    if which:
        return (new_m, new_v)[which - 1]
    m_hat = ratio(new_m, number(1 - beta1**t, "1 − beta1^t"), "mhat")
    v_hat = ratio(new_v, number(1 - beta2**t, "1 − beta2^t"), "vhat")
    direction = ratio(m_hat, total((function("sqrt", v_hat), number(eps, "eps"))))
    decay = product((number(weight_decay, "wd"), theta))
    return total((theta, product((number(-1), lr, total((direction, decay))))))


flops = per_element(16, 27)  # both moments 7, the direction 5, decay and step 4

adamw = Equation.of(
    __name__,
    title="AdamW update",
    latex=r"\theta' = \theta - \alpha \left( \frac{\hat m_t}{\sqrt{\hat v_t} + \epsilon} + \lambda \theta "
    r"\right), \quad m_t = \beta_1 m_{t-1} + (1-\beta_1) g_t, \quad v_t = \beta_2 v_{t-1} + (1-\beta_2) g_t^2, "
    r"\quad \hat m_t = \frac{m_t}{1-\beta_1^t}, \quad \hat v_t = \frac{v_t}{1-\beta_2^t}",
    derivative=r"\partial \theta = (1 - \alpha\lambda)\, \partial \theta', \quad "
    r"d_m = \partial m_t - \frac{\alpha\, \partial \theta'}{s (1-\beta_1^t)}, \quad "
    r"d_v = \partial v_t + \frac{\alpha\, \hat m_t\, \partial \theta'}"
    r"{2 s^2 \sqrt{\hat v_t} (1-\beta_2^t)}, \quad s = \sqrt{\hat v_t} + \epsilon, \quad "
    r"\partial g_t = (1-\beta_1)\, d_m + 2 (1-\beta_2)\, g_t\, d_v, \quad "
    r"\partial m_{t-1} = \beta_1\, d_m, \quad "
    r"\partial v_{t-1} = \beta_2\, d_v, \quad "
    r"\partial \alpha = -\sum \partial \theta' \left( \frac{\hat m_t}{s} + \lambda \theta \right)",
    inputs=(
        Symbol("theta", r"\theta", "(...)", "parameter"),
        Symbol("g", "g_t", "(...)", "its gradient"),
        Symbol("m", "m_{t-1}", "(...)", "moving average of gradients"),
        Symbol("v", "v_{t-1}", "(...)", "moving average of squared gradients", nonnegative=True),
        Symbol("lr", r"\alpha", "()", "learning rate"),
        Symbol("t", "t", "()", "number of this step, from 1"),
    ),
    result=tuple(
        Symbol(name, letter, "(...)", "new parameter and moments")
        for name, letter in (("theta", r"\theta'"), ("m", "m_t"), ("v", "v_t"))
    ),
    role="update",
    seed_names=("optim::AdamW::step",),
)
