"""Write what PyTorch says of a few models to `tests/fixtures`: `PYTHONPATH=src python tests/oracle/make_fixtures.py`.

The files let a run without torch hold byhand against torch's numbers; `test_fixtures.py` holds the files against
torch itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from byhand.config import ModelConfig, to_dict  # noqa: E402
from model_cases import ADAMW, STEPS, batch, parameters, setting_name, stored_settings  # noqa: E402
from oracle import torch_reference  # noqa: E402


def fixture(config: ModelConfig) -> dict[str, Any]:
    """Return the logits, loss, gradients and loss curve of one model, by torch in float64."""
    arrays, (tokens, targets) = parameters(config), batch(config)
    loss, gradients = torch_reference.gradients(arrays, tokens, targets, config)
    logits = torch_reference.logits(
        torch_reference.as_parameters(arrays), torch_reference.torch.from_numpy(tokens), config
    )
    return {
        "config": to_dict(config),
        "tokens": tokens.tolist(),
        "targets": targets.tolist(),
        "logits": logits.tolist(),
        "loss": loss,
        "loss_curve": torch_reference.loss_curve(arrays, tokens, targets, config, STEPS, **ADAMW),
        "gradients": {name: gradient.tolist() for name, gradient in gradients.items()},
    }


def main() -> None:
    """Write one file for each stored setting."""
    for config in stored_settings():
        path = TESTS / "fixtures" / f"{setting_name(config)}.json"
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in fixture(config).items())
        path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        print(f"{path.relative_to(TESTS.parent)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
