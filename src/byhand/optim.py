"""AdamW and Muon over named parameters, and averaged weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import OptimConfig
from byhand.engine import Equation, Tensor
from byhand.engine.arrays import namespace, require
from byhand.equations.adamw import adamw
from byhand.equations.muon import muon
from byhand.layers.parameter import Arrays, Parameter

Updated = tuple[Any, Any, Any, Any]  # a parameter, its moments m and v, its average; None if not kept


class AdamW:
    r"""AdamW: one application of the `adamw` equation for each parameter.

    lr            learning rate; assign to it between steps to follow a schedule
    betas, eps    as in the equation
    weight_decay  decoupled, scaled by lr, on every array (`decay="all"`) or on `matrices` alone
    matrices      names of parameters, as a model's layers declare them; None: those with two or more axes
    scales        factors of lr by parameter name; 1 for the others
    ema           decay of the parameters' moving `averages` (see `averaged`); 0 keeps none
    t             steps made so far; moments m and v are kept by parameter name, in the parameter's dtype

    Deviation from the paper: decay is scaled by lr, as PyTorch and the original program do.
    """

    momentum = 0.0
    parts: Mapping[str, int] = {}  # of the arrays that Muon updates: number of matrices side by side in each

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        decay: Literal["all", "matrices"] = "all",
        matrices: Collection[str] | None = None,
        *,
        scales: Mapping[str, float] | None = None,
        ema: float = 0.0,
    ) -> None:
        # the same checks, with the same messages, as for a run's settings
        OptimConfig(lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay, decay=decay, ema=ema)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay
        self.matrices = None if matrices is None else frozenset(matrices)
        self.scales = dict(scales or {})
        self.ema = ema
        self.t = 0
        self.m: dict[str, Any] = {}
        self.v: dict[str, Any] = {}
        self.averages: dict[str, Any] = {}

    @property
    def state(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The arrays kept between steps: m, v and averages."""
        return self.m, self.v, self.averages

    @state.setter
    def state(self, kept: Iterable[Mapping[str, Any]]) -> None:
        self.m, self.v, self.averages = map(dict, kept)

    def is_matrix(self, name: str, array: Any) -> bool:
        """Return whether decay="matrices" decays a parameter."""
        return array.ndim >= 2 if self.matrices is None else name in self.matrices

    def decays(self, name: str, array: Any) -> bool:
        """Return whether weight decay acts on a parameter."""
        return self.decay == "all" or self.is_matrix(name, array)

    def rate_of(self, name: str) -> float:
        """Return the learning rate of a parameter."""
        return self.lr * self.scales.get(name, 1.0)

    def settings(self, decaying: Collection[str], max_norm: Any = 0.0) -> UpdateSettings:
        """Return the settings of its updates."""
        return UpdateSettings(
            self.betas, self.eps, self.weight_decay, frozenset(decaying), max_norm, self.scales, self.parts,
            self.momentum, self.ema,
        )  # fmt: skip

    def step(self, parameters: Mapping[str, Tensor]) -> None:
        """Replace each parameter's array by the updated one. A parameter without gradient stays as it is.

        Even if an interrupt ends it, either all of them are replaced and t counts the step, or nothing changes.
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

    def application(
        self, name: str, parameter: Tensor, gradient: Any
    ) -> tuple[Equation, dict[str, Any], dict[str, Any]]:
        """Return the equation of a parameter's next update by a gradient, its inputs by name, its static settings."""
        settings = self.settings([name] if self.decays(name, parameter) else [])
        return _application(
            name, parameter.data, gradient, (self.m, self.v), self.rate_of(name), self.t + 1, settings
        )

    def _updated(self, parameters: Mapping[str, Tensor], max_norm: float) -> tuple[dict[str, Updated], Any]:
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        for name, g in gradients.items():
            p = parameters[name]
            require(
                g.shape == p.shape and g.dtype == p.dtype,
                f"AdamW: the gradient of {name} is {g.shape} {g.dtype}, not {p.shape} {p.dtype}",
            )
        arrays = {name: parameters[name].data for name in gradients}
        settings = self.settings([name for name, array in arrays.items() if self.decays(name, array)], max_norm)
        return update(arrays, gradients, self.state, self.t + 1, self.lr, settings)

    def _replace(self, parameters: Mapping[str, Tensor], made: dict[str, Updated]) -> None:
        t = self.t + 1

        def commit() -> None:
            for name, (theta, *state) in made.items():
                parameters[name].data = theta
                for held, new in zip(self.state, state, strict=True):
                    if new is not None:
                        held[name] = new
            self.t = t

        try:
            commit()
        finally:
            commit()  # completes the one above if an interrupt cut it short; else it changes nothing


class Muon(AdamW):
    """Muon for some matrices, one application of the `muon` equation each; AdamW for every other parameter.

    parts     names of the arrays that Muon updates, each with the number of matrices packed in it side by side
              along its last axis, which are orthogonalised apart
    momentum  as in the equation

    The further settings are those of AdamW; Muon's learning rate is lr times the array's scale.
    """

    def __init__(self, parts: Mapping[str, int], momentum: float = 0.95, **adamw: Any) -> None:
        super().__init__(**adamw)
        OptimConfig(muon_momentum=momentum)
        self.parts = dict(parts)
        self.momentum = momentum


def optimizer_of(config: OptimConfig, declared: Mapping[str, Parameter]) -> AdamW:
    """Return the optimizer of a run's settings before its first step, for parameters as the layers declare them."""
    settings: dict[str, Any] = {
        "lr": config.lr,
        "betas": (config.beta1, config.beta2),
        "eps": config.eps,
        "weight_decay": config.weight_decay,
        "decay": config.decay,
        "matrices": [name for name, parameter in declared.items() if parameter.decays],
        "scales": {
            n: config.rate_of(p.group) / config.lr
            for n, p in declared.items()
            if config.rate_of(p.group) != config.lr
        },
        "ema": config.ema,
    }
    if config.optimizer == "adamw":
        return AdamW(**settings)
    return Muon(by_muon(config, declared), config.muon_momentum, **settings)


def by_muon(config: OptimConfig, declared: Mapping[str, Parameter]) -> dict[str, int]:
    """Return the parameters that Muon updates, which have no second moment, and the number of matrices in each."""
    return {n: p.parts for n, p in declared.items() if config.optimizer == "muon" and p.group == "matrices"}


class UpdateSettings(NamedTuple):
    """The settings of an update, fixed for a run: a traced update may be compiled for them.

    decaying         names of the parameters that weight decay acts on
    scales           factors of lr by parameter name; 1 for the others
    parts, momentum  of Muon: its parameters, with the number of matrices packed in each, and its memory
    ema              decay of the averages; 0 makes none
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    decaying: frozenset[str] = frozenset()
    max_norm: Any = 0.0
    scales: Mapping[str, float] = {}
    parts: Mapping[str, int] = {}
    momentum: float = 0.95
    ema: float = 0.0


def update(
    parameters: Arrays, gradients: Arrays, state: tuple[Arrays, Arrays, Arrays], t: Any, lr: Any,
    settings: UpdateSettings,
) -> tuple[dict[str, Updated], Any]:  # fmt: skip
    """Return (parameter, m, v, average) after step t by name, and the gradients' norm before clipping.

    A function of arrays by name, without a branch on their values: it can be traced. The step t (from 1) and lr may
    be arrays. Missing moments count as zeros, a missing average as its parameter. Parameters without gradient are
    left out.
    """
    norm = gradient_norm(gradients)
    m, v, averages = state
    made: dict[str, Updated] = {}
    for name, g in clip_gradients(gradients, norm, settings.max_norm).items():
        theta = parameters[name]
        rate = namespace(theta).asarray(lr * settings.scales.get(name, 1.0), dtype=theta.dtype)
        equation, inputs, static = _application(name, theta, g, (m, v), rate, t, settings)
        (new, *moments), _ = equation.forward(*inputs.values(), **static)
        average = averaged(averages.get(name, theta), new, t, settings.ema) if settings.ema else None
        made[name] = new, moments[0], moments[1] if len(moments) > 1 else None, average
    return made, norm


def _application(
    name: str, theta: Any, g: Any, moments: tuple[Arrays, Arrays], rate: Any, t: Any, settings: UpdateSettings
) -> tuple[Equation, dict[str, Any], dict[str, Any]]:
    """Return the equation that updates a parameter, its inputs by name, and its static settings."""
    decay = settings.weight_decay if name in settings.decaying else 0.0
    by_muon = name in settings.parts
    arrays = {"theta": theta, "g": g}
    for letter, kept in zip("m" if by_muon else "mv", moments, strict=False):
        arrays[letter] = kept[name] if name in kept else namespace(theta).zeros_like(theta)
    if by_muon:
        static = {"momentum": settings.momentum, "weight_decay": decay, "parts": settings.parts[name]}
        return muon, {**arrays, "lr": rate}, static
    static = {"beta1": settings.betas[0], "beta2": settings.betas[1], "eps": settings.eps, "weight_decay": decay}
    return adamw, {**arrays, "lr": rate, "t": t}, static


def averaged(average: Any, theta: Any, t: Any, decay: float) -> Any:
    r"""Return the moving average of a parameter after step t.

    Equation    a' = a + (1 - d) (theta - a),   d = min(decay, (1 + t) / (10 + t))
                so that early averages, of few steps, are not held back by the initial weights
    Source      Tarvainen & Valpola 2017, arXiv:1703.01780; the smaller decay at first is TensorFlow's
    """
    xp = namespace(theta)
    kept = xp.minimum(xp.asarray(decay, dtype=theta.dtype), xp.asarray((1 + t) / (10 + t), dtype=theta.dtype))
    return average + (1.0 - kept) * (theta - average)


def decay_at(t: int, decay: float) -> float:
    """Return d of `averaged` after step t."""
    return min(decay, (1 + t) / (10 + t))
