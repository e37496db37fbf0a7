"""Norms: bring every vector of the stream to one scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.layer_norm import layer_norm
from byhand.equations.rms_norm import rms_norm
from byhand.layers.parameter import Parameter, Tree, ones, zeros


class Norm(Protocol):
    """The interface of norms."""

    def parameters(self) -> dict[str, Parameter]:
        """Return the norm's parameters by name."""
        ...

    def apply(self, p: Tree, x: Tensor, name: str) -> Tensor:
        """Return x (..., C), each vector at one scale; `name` is the result's."""
        ...


@dataclass(frozen=True)
class LayerNorm:
    """Mean 0 and variance 1; `norm_affine` adds a learned gain and bias; without `norm_bias` the bias stays 0."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return gain and bias (C,), or nothing."""
        width = ("width", self.config.d_model)
        bias = replace(zeros(width), trained=self.config.norm_bias)
        return {"gain": ones(width), "bias": bias} if self.config.norm_affine else {}

    def apply(self, p: Tree, x: Tensor, name: str) -> Tensor:
        """Return x (..., C) normalised."""
        affine = (p["gain"], p["bias"]) if self.config.norm_affine else ()
        return layer_norm(x, *affine, eps=self.config.norm_eps, name=name)


@dataclass(frozen=True)
class RMSNorm:
    """Root mean square 1; `norm_affine` adds a learned gain, and no bias."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return the gain (C,), or nothing."""
        return {"gain": ones(("width", self.config.d_model))} if self.config.norm_affine else {}

    def apply(self, p: Tree, x: Tensor, name: str) -> Tensor:
        """Return x (..., C) normalised."""
        gain = (p["gain"],) if self.config.norm_affine else ()
        return rms_norm(x, *gain, eps=self.config.norm_eps, name=name)


NORMS = {"layer": LayerNorm, "rms": RMSNorm}


def norm_of(config: ModelConfig) -> Norm:
    """Return the norm of this config."""
    return NORMS[config.norm](config)
