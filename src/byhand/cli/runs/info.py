"""`byhand info`: a run's model, settings, checkpoints and losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import show, show_json
from byhand.cli.terminal.shown import shown
from byhand.config import GROUPS, OF_THE_REST, ModelConfig, OptimConfig, TrainConfig, to_dict
from byhand.engine.equation import registry
from byhand.files import run_folder
from byhand.interop import exchange
from byhand.model import declared
from byhand.runs import checkpoint, metrics
from byhand.tokenizers.byte import ByteTokenizer
from byhand.update_rules import settings_of


@dataclass(frozen=True)
class Options:
    """Show a run's model, settings, checkpoints and last losses."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    json: Switch = False
    """Print one JSON object."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand info")
    facts = gather(options.run)
    if options.json:
        show_json(facts, indent=2)
        return 0
    for key, value in facts.items():
        if isinstance(value, dict):
            show(f"{shown(key)}:")
            width = max(16, *map(len, value)) if value else 16
            for name, setting in value.items():
                show(f"  {shown(name):<{width}} {_plain(setting)}")
        else:
            show(f"{key:<12} {_plain(value)}")
    return 0


def gather(run: Path) -> dict[str, Any]:
    """Return the facts of a run, from its newest whole checkpoint and its metrics, or of another program's model."""
    loaded = exchange.model(run, unread=False)
    imported, model = "imported" in loaded.state, loaded.config.model
    folder = run_folder.run_of(run)
    listed = (run_folder.checkpoints(folder) or [run]) if loaded.path else []
    states = {p.resolve().name: str(checkpoint.defect(p) or "whole") for p in reversed(listed)}
    rows = [row for row in metrics.read(folder) if row["step"] <= loaded.step] if loaded.path else []
    evaluated = [r for r in rows if "val/loss" in r]
    tokenizer, used = loaded.tokenizer, loaded.state.get("used")
    named = {"kind": tokenizer.kind, "tokens": tokenizer.vocab_size, "sha256": tokenizer.digest}
    named |= tokenizer.described()
    return {
        "run": str(run),
        "step": loaded.step if imported else f"{loaded.step} of {loaded.config.steps}",
        **({"planned": planned} if (planned := _planned(loaded.state.get("planned"))) else {}),
        "parameters": sum(a.size for a in loaded.parameters.values()),
        **({"trained": sum(trained)} if (trained := _trained(model)) else {}),
        **({"imported": loaded.state["imported"]} if imported else {"text": loaded.state.get("text", {})}),
        **({"conversations": chat} if (chat := loaded.state.get("chat")) else {}),
        **({} if isinstance(tokenizer, ByteTokenizer) else {"tokenizer": named}),
        "train/loss": rows[-1]["train/loss"] if rows else None,
        "val/loss": evaluated[-1]["val/loss"] if evaluated else None,
        **({"sampled": loaded.of_average} if loaded.of_average else {}),
        **({"best": run_folder.name_of(loaded.best[0])} if loaded.best else {}),
        **({"checkpoints": states} if states else {}),
        "model": to_dict(loaded.config.model) | _sizes(loaded.config.model),
        **({} if imported else _of_training(loaded.config)),
        **({"computed by": {**used, "dtype": loaded.config.dtype}} if isinstance(used, dict) else {}),
        **({} if imported else {"versions": loaded.state.get("versions", {})}),
    }


def _sizes(model: ModelConfig) -> dict[str, int]:
    """Return the sizes that, unless given, derive from others."""
    return {"n_kv_heads": model.kv_heads, "d_head": model.head_width, "d_ff": model.ff_width}


def _trained(model: ModelConfig) -> list[int]:
    """Return the sizes of the trained arrays, of a run in which others are frozen."""
    return (
        [math.prod(p.shape) for p in declared(model).values() if p.trained]
        if model.lora or not model.norm_bias
        else []
    )


def _planned(changes: object) -> dict[str, int]:
    """Return a run's earlier planned numbers of steps, by the step until which each was in force."""
    pairs = changes if isinstance(changes, list) else []
    return {f"until step {pair[0]}": pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2}


def _of_training(config: TrainConfig) -> dict[str, Any]:
    """Return the settings of training, which an imported model lacks."""
    found = to_dict(config)
    training = {k: v for k, v in found.items() if k not in ("data", "model", "optim")}
    return {"optim": found["optim"], **_groups(config.optim), "training": training}


def _groups(optim: OptimConfig) -> dict[str, Any]:
    """Return the peak learning rate and update of each group of parameters, unless all have lr and AdamW."""
    found: dict[str, Any] = {}
    for group in GROUPS:
        update, rate = registry[optim.rule_of(group)], optim.rate_of(group)
        own = [f"{name} {getattr(optim, field):g}" for name, field in settings_of(update).items() if field != name]
        said = ", ".join([update.title.removesuffix(" update"), *own])
        found[group] = rate if update.name == OF_THE_REST else f"{rate:g} ({said})"
    return {} if set(found.values()) == {optim.lr} else {"learning rates": found}


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else shown(value)
