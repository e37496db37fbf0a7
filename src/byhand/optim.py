"""AdamW over named parameters, its learning-rate schedule, and clipping by global norm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from byhand.config import OptimConfig
from byhand.engine import Tensor
from byhand.engine.arrays import namespace, require
from byhand.equations import adamw


class AdamW:
    r"""AdamW: one application of the `adamw` equation for each parameter.

    lr            learning rate; assign to it between steps to follow a schedule
    betas, eps    as in the equation
    weight_decay  decoupled, scaled by lr, on every array (`decay="all"`) or on those with two or more axes
    t             steps made so far; moments m and v are kept by parameter name, in the parameter's dtype

    Deviation from the paper: decay is scaled by lr, as PyTorch and the seed program do.
    """

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        decay: Literal["all", "matrices"] = "all",
    ) -> None:
        # the same checks, with the same messages, as for a run's settings
        OptimConfig(lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay, decay=decay)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay
        self.t = 0
        self.m: dict[str, Any] = {}
        self.v: dict[str, Any] = {}

    def step(self, parameters: Mapping[str, Tensor]) -> None:
        """Replace each parameter's array by the updated one. A parameter without gradient stays as it is.

        However it ends, also by an interrupt: all of them are replaced and t counts the step, or nothing changed.
        """
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        for name, g in gradients.items():
            p = parameters[name]
            require(
                g.shape == p.shape and g.dtype == p.dtype,
                f"AdamW: the gradient of {name} is {g.shape} {g.dtype}, not {p.shape} {p.dtype}",
            )
        t = self.t + 1
        made = {name: self._updated(name, parameters[name], g, t) for name, g in gradients.items()}

        def commit() -> None:
            for name, arrays in made.items():
                parameters[name].data, self.m[name], self.v[name] = arrays
            self.t = t

        try:
            commit()
        finally:
            commit()  # once more, which changes nothing unless an interrupt ended it above

    def _updated(self, name: str, p: Tensor, g: Any, t: int) -> tuple[Any, Any, Any]:
        """Return a parameter and its moments after step t."""
        xp = namespace(p.data)
        m = self.m[name] if name in self.m else xp.zeros_like(p.data)
        v = self.v[name] if name in self.v else xp.zeros_like(p.data)
        decayed = self.decay == "all" or p.ndim >= 2
        arrays, _ = adamw.forward(
            p.data,
            g,
            m,
            v,
            self.lr,
            t,
            beta1=self.betas[0],
            beta2=self.betas[1],
            eps=self.eps,
            weight_decay=self.weight_decay if decayed else 0.0,
        )
        return arrays


def learning_rate(config: OptimConfig, step: int, steps: int) -> float:
    r"""Return the learning rate of update `step` (from 0) of `steps`.

    Equation    lr (step + 1) / warmup while step < warmup (at most half of the run), then
                floor + (lr - floor) (1 + cos(pi (step - warmup) / (steps - 1 - warmup))) / 2, or lr for "constant"
    Source      Loshchilov & Hutter 2017, arXiv:1608.03983
    """
    warmup = min(config.warmup_steps, steps // 2)
    if step < warmup:
        return config.lr * (step + 1) / warmup
    if config.schedule == "constant":
        return config.lr
    progress = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    return config.floor_lr + (config.lr - config.floor_lr) * (1 + math.cos(math.pi * progress)) / 2


def gradient_norm(parameters: Mapping[str, Tensor]) -> float:
    """Return the Euclidean norm of all gradients together."""
    squares = [float(namespace(p.grad).sum(p.grad * p.grad)) for p in parameters.values() if p.grad is not None]
    return math.sqrt(math.fsum(squares)) if all(map(math.isfinite, squares)) else math.inf


def clip_gradients(parameters: Mapping[str, Tensor], norm: float, max_norm: float) -> None:
    """Scale every gradient by max_norm / norm if the global norm is larger than max_norm (0: never)."""
    if max_norm and norm > max_norm:
        for p in parameters.values():
            if p.grad is not None:
                p.grad = p.grad * (max_norm / norm)
