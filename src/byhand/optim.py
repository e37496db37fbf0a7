"""AdamW over named parameters, its learning-rate schedule, and clipping by global norm."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from byhand.config import OptimConfig
from byhand.engine import Tensor
from byhand.engine.arrays import namespace, require
from byhand.equations.adamw import adamw

Arrays = Mapping[str, Any]  # by parameter name
Updated = tuple[Any, Any, Any]  # a parameter, its first and its second moment


class AdamW:
    r"""AdamW: one application of the `adamw` equation for each parameter.

    lr            learning rate; assign to it between steps to follow a schedule
    betas, eps    as in the equation
    weight_decay  decoupled, scaled by lr, on every array (`decay="all"`) or on `matrices` alone
    matrices      names of parameters, as a model's layers declare them; None: those with two or more axes
    t             steps made so far; moments m and v are kept by parameter name, in the parameter's dtype

    Deviation from the paper: decay is scaled by lr, as PyTorch and the original program do.
    """

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        decay: Literal["all", "matrices"] = "all",
        matrices: Collection[str] | None = None,
    ) -> None:
        # the same checks, with the same messages, as for a run's settings
        OptimConfig(lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay, decay=decay)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay
        self.matrices = None if matrices is None else frozenset(matrices)
        self.t = 0
        self.m: dict[str, Any] = {}
        self.v: dict[str, Any] = {}

    @classmethod
    def of(cls, config: OptimConfig, matrices: Collection[str]) -> AdamW:
        """Return the optimizer of a run's settings before its first step."""
        betas = (config.beta1, config.beta2)
        return cls(config.lr, betas, config.eps, config.weight_decay, config.decay, matrices)

    def is_matrix(self, name: str, array: Any) -> bool:
        """Return whether decay="matrices" decays a parameter."""
        return array.ndim >= 2 if self.matrices is None else name in self.matrices

    def decays(self, name: str, array: Any) -> bool:
        """Return whether weight decay acts on a parameter."""
        return self.decay == "all" or self.is_matrix(name, array)

    def step(self, parameters: Mapping[str, Tensor]) -> None:
        """Replace each parameter's array by the updated one. A parameter without gradient stays as it is.

        However it ends, also by an interrupt: all of them are replaced and t counts the step, or nothing changed.
        """
        made, _ = self._updated(parameters, 0.0)
        self._replace(parameters, made)

    def clipped_step(self, parameters: Mapping[str, Tensor], max_norm: float) -> float:
        """Make a step with gradients clipped to the global norm max_norm (0: never); return the norm before.

        Nothing changes if the norm is not finite.
        """
        made, norm = self._updated(parameters, max_norm)
        if math.isfinite(norm):
            self._replace(parameters, made)
        return float(norm)

    def _updated(self, parameters: Mapping[str, Tensor], max_norm: float) -> tuple[dict[str, Updated], Any]:
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        for name, g in gradients.items():
            p = parameters[name]
            require(
                g.shape == p.shape and g.dtype == p.dtype,
                f"AdamW: the gradient of {name} is {g.shape} {g.dtype}, not {p.shape} {p.dtype}",
            )
        arrays = {name: parameters[name].data for name in gradients}
        decaying = frozenset(name for name, array in arrays.items() if self.decays(name, array))
        settings = UpdateSettings(self.betas, self.eps, self.weight_decay, decaying, max_norm)
        return update(arrays, gradients, (self.m, self.v), self.t + 1, self.lr, settings)

    def _replace(self, parameters: Mapping[str, Tensor], made: dict[str, Updated]) -> None:
        t = self.t + 1

        def commit() -> None:
            for name, (theta, m, v) in made.items():
                parameters[name].data, self.m[name], self.v[name] = theta, m, v
            self.t = t

        try:
            commit()
        finally:
            commit()  # once more, which changes nothing unless an interrupt ended it above


class UpdateSettings(NamedTuple):
    """What an update needs beside its arrays; fixed for a run, so that a traced update may be compiled for it.

    decaying  names of the parameters that weight decay acts on
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    decaying: frozenset[str] = frozenset()
    max_norm: Any = 0.0


def update(
    parameters: Arrays, gradients: Arrays, moments: tuple[Arrays, Arrays], t: Any, lr: Any, settings: UpdateSettings
) -> tuple[dict[str, Updated], Any]:
    """Return (parameter, m, v) after step t by name, and the gradients' norm before clipping.

    A function of arrays by name, without a branch on their values: it can be traced. The step t (from 1) and lr may
    be arrays. A name that the moments lack has zeros. Parameters without gradient are left out.
    """
    norm = gradient_norm(gradients)
    m, v = moments
    made = {}
    for name, g in clip_gradients(gradients, norm, settings.max_norm).items():
        theta = parameters[name]
        xp = namespace(theta)
        made[name], _ = adamw.forward(
            theta,
            g,
            m[name] if name in m else xp.zeros_like(theta),
            v[name] if name in v else xp.zeros_like(theta),
            xp.asarray(lr, dtype=theta.dtype),
            t,
            beta1=settings.betas[0],
            beta2=settings.betas[1],
            eps=settings.eps,
            weight_decay=settings.weight_decay if name in settings.decaying else 0.0,
        )
    return made, norm


def gradient_norm(gradients: Arrays) -> Any:
    """Return the Euclidean norm of all gradients together, as an array; infinite if one of them is not finite.

    Sums of squares are added in the widest type that the arrays' namespace has by default, with what each addition
    rounds off carried along (Knuth's TwoSum), so that the order of the parameters changes nothing.
    """
    if not gradients:
        return 0.0
    xp = namespace(next(iter(gradients.values())))
    wide = xp.__array_namespace_info__().default_dtypes()["real floating"]
    squares = xp.stack([xp.asarray(xp.sum(g * g), dtype=wide) for g in gradients.values()])
    finite = xp.isfinite(squares)
    total = lost = xp.zeros((), dtype=wide)
    for i in range(len(gradients)):
        square = xp.where(finite[i], squares[i], xp.zeros_like(total))
        longer = total + square
        part = longer - total
        lost = lost + ((total - (longer - part)) + (square - part))
        total = longer
    return xp.where(xp.all(finite), xp.sqrt(total + lost), xp.asarray(math.inf, dtype=wide))


def clip_gradients(gradients: Arrays, norm: Any, max_norm: Any) -> Arrays:
    """Return the gradients scaled by max_norm / norm if the global norm is larger than max_norm (0: never).

    max_norm may be an array; it must be positive then.
    """
    if not gradients or (isinstance(max_norm, (int, float)) and not max_norm):
        return gradients
    xp = namespace(norm)
    scale = max_norm / xp.maximum(norm, xp.asarray(max_norm, dtype=norm.dtype))  # 1 for short gradients
    return {name: g * xp.asarray(scale, dtype=g.dtype) for name, g in gradients.items()}


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
