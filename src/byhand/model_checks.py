"""Checks of combinations of a model's settings; each error says what to use."""

from __future__ import annotations

import math
from typing import Any

from byhand.config_checks import LARGE, MOST, at_least, at_most, brief, usual
from byhand.errors import ConfigError


def require_model(config: Any) -> None:
    """Raise ConfigError unless a model can be built from the settings, whose types are already checked."""
    at_least(config, 1, "vocab_size", "seq_len", "d_model", "n_layers", "n_heads", "rope_original_len", "rope_factor")
    given = [
        name for name in ("d_ff", "n_kv_heads", "d_head", "attention_window") if getattr(config, name) is not None
    ]
    at_least(config, 1, *given)
    at_least(config, 0, "logit_softcap", "lora")
    at_most(config)
    if config.d_head is None and config.d_model % config.n_heads:
        divisors = [h for h in range(1, config.d_model + 1) if config.d_model % h == 0]
        near = sorted(divisors, key=lambda h: abs(h - config.n_heads))[:2]
        raise ConfigError(
            f"n_heads {brief(config.n_heads)} does not divide d_model {config.d_model}. "
            f"Use n_heads {' or '.join(map(str, sorted(near)))}."
        )

    if config.n_heads % config.kv_heads:
        divisors = [k for k in range(1, config.n_heads + 1) if config.n_heads % k == 0]
        raise ConfigError(
            f"n_kv_heads {brief(config.kv_heads)} does not divide n_heads {config.n_heads}. "
            f"Use n_kv_heads {' or '.join(map(str, divisors[-4:]))}."
        )
    for name, low in (("rope_base", 1), ("norm_eps", 0)):
        if not getattr(config, name) > low:
            raise ConfigError(f"{name} is {getattr(config, name)}, but must be above {low}.{usual(config, name)}")
    if config.norm_eps > LARGE:
        raise ConfigError(
            f"norm_eps is {config.norm_eps:g}, but can be at most {LARGE:g}.{usual(config, 'norm_eps')}"
        )
    if config.logit_softcap and not 1 / LARGE <= config.logit_softcap <= LARGE:
        raise ConfigError(
            f"logit_softcap is {config.logit_softcap:g}, but must be 0 or from {1 / LARGE:g} to {LARGE:g}. Use 15."
        )
    if not 0 < config.rope_fraction <= 1:
        raise ConfigError(f"rope_fraction is {config.rope_fraction}, but must be above 0 and at most 1. Use 1.")
    if config.positions == "rotary" and config.rotary_width < 2:
        raise ConfigError(
            f"heads of width {config.head_width} have no pair of numbers to rotate with rope_fraction "
            f"{config.rope_fraction:g}. Use wider heads or positions learned."
        )
    _require_scaling(config)
    if config.lora_alpha is not None and not 0 < config.lora_alpha <= LARGE:
        raise ConfigError(f"lora_alpha is {config.lora_alpha:g}, but must be above 0 and at most {LARGE:g}. Use 16.")
    if config.attention_window is not None and not config.causal:
        raise ConfigError("attention_window is for causal attention. Leave it out, or set causal.")
    _require_pattern(config)
    divisor = config.attention_divisor
    if divisor is not None and not 1 / LARGE <= divisor <= LARGE:
        raise ConfigError(
            f"attention_divisor is {divisor:g}, but must be from {1 / LARGE:g} to {LARGE:g}. Leave it out, or use 1."
        )


def _require_pattern(config: Any) -> None:
    """Raise ConfigError unless the pattern of layers fits the settings that its layers need."""
    pattern, window = config.layer_pattern, config.attention_window
    if strange := next((letter for letter in pattern if letter not in "gwn"), ""):
        raise ConfigError(f"layer_pattern has {brief(strange)}, but knows g, w and n. Use wwwwwg.")
    if len(pattern) > MOST["n_layers"]:
        raise ConfigError(f"layer_pattern has {len(pattern)} letters, but may have {MOST['n_layers']}. Use fewer.")
    if "w" in pattern and window is None:
        raise ConfigError(
            "layer_pattern has layers with a window (w), but its size is not given. Use attention_window 256."
        )
    if pattern and "w" not in pattern and window is not None:
        raise ConfigError("attention_window is for the layers w of layer_pattern, which has none. Leave it out.")
    if "n" in pattern and config.positions != "rotary":
        raise ConfigError(
            f"layers n of layer_pattern lack rotary positions, but positions is {config.positions}. Use g."
        )
    base = config.rope_window_base
    if base is not None and "w" not in pattern:
        raise ConfigError("rope_window_base is for the layers w of layer_pattern, which has none. Use rope_base.")
    if base is not None and not base > 1:
        raise ConfigError(f"rope_window_base is {base:g}, but must be above 1. Use 10000.")


def _require_scaling(config: Any) -> None:
    """Raise ConfigError unless the settings for scaling rotary angles are consistent."""
    slow, fast, length = config.rope_slow, config.fast_turns, config.rope_original_len
    if not 0 < slow < fast <= LARGE:
        raise ConfigError(
            f"rope_slow is {slow:g} and rope_fast {fast:g}, but they must be above 0, the second one larger, and at "
            f"most {LARGE:g}. Use rope_slow 1 and leave out rope_fast."
        )
    least = math.ceil(2 * math.pi * slow)
    if config.rope_scaling == "yarn" and length < least:
        raise ConfigError(
            f"rope_original_len is {length}, but no pair makes {slow:g} turns in so few positions. "
            f"Use {least} or more."
        )
    if config.rope_factor > LARGE:
        raise ConfigError(f"rope_factor is {config.rope_factor:g}, but can be at most {LARGE:g}. Use a smaller one.")
    m = config.rope_attention
    if m is not None and not 1 / LARGE <= m <= LARGE:
        raise ConfigError(
            f"rope_attention is {m:g}, but must be from {1 / LARGE:g} to {LARGE:g}. Leave it out, or use 1."
        )
