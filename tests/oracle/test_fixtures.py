import json
from pathlib import Path

import numpy as np
import pytest

from model_cases import setting_name, stored_settings
from oracle import torch_reference  # noqa: F401  (skips without torch)
from oracle.make_fixtures import fixture

pytestmark = pytest.mark.oracle
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_the_stored_numbers_are_what_torch_says(config):
    stored = json.loads((FIXTURES / f"{setting_name(config)}.json").read_text(encoding="utf-8"))
    fresh = fixture(config)
    assert set(stored) == set(fresh)
    assert set(stored["gradients"]) == set(fresh["gradients"])
    for key in ("config", "tokens", "targets"):
        assert stored[key] == fresh[key]
    for key in ("logits", "loss", "loss_curve"):
        np.testing.assert_allclose(stored[key], fresh[key], rtol=1e-12, atol=1e-12)
    for name, gradient in fresh["gradients"].items():
        np.testing.assert_allclose(stored["gradients"][name], gradient, rtol=1e-12, atol=1e-12)
