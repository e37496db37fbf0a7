"""Adapters of ours that PEFT loads, and PEFT's that we merge: the logits of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byhand.config import TrainConfig
from byhand.interop import exchange
from byhand.model import declared
from byhand.runs.contents import Checkpoint
from interop.run_cases import GPT2, LLAMA, logits, parameters
from oracle.torch_reference import torch

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
peft = pytest.importorskip("peft", reason="PEFT is not installed, so nothing is compared with it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:UserWarning")]
MODELS = {"gpt2": GPT2, "llama": LLAMA, "neighbours": replace(LLAMA, rope_pairing="neighbours")}
TOKENS = [[1, 2, 3, 4, 5, 4, 3, 2], [9, 8, 7, 6, 5, 4, 3, 2]]


def base_of(config, arrays, place):
    """Write the base for transformers, and load it."""
    plain = {name: arrays[name] for name in declared(config)}
    exchange.write(Checkpoint(TrainConfig(model=config), plain, {}, {"step": 0}), "hf", place)
    return transformers.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)


def their_logits(model):
    with torch.no_grad():
        return model.eval()(torch.tensor(TOKENS)).logits.numpy()


@pytest.mark.parametrize("name", MODELS)
def test_peft_computes_of_our_adapter_what_we_do(name, tmp_path):
    config = replace(MODELS[name], lora=4, lora_on="attn.*,mlp.*,lm_head.w")
    arrays = parameters(config)
    exchange.write(Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0}), "peft", tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(base_of(MODELS[name], arrays, tmp_path / "base"), tmp_path / "adapter")
    np.testing.assert_allclose(their_logits(theirs), logits(config, arrays, TOKENS), atol=1e-4)


@pytest.mark.parametrize(("root", "init"), [(False, False), (True, False), (False, "orthogonal")])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_we_compute_of_pefts_adapter_what_it_does(name, root, init, tmp_path):
    model = base_of(MODELS[name], parameters(MODELS[name]), tmp_path / "base")
    modules = ["c_attn", "c_proj", "c_fc"] if name == "gpt2" else ["q_proj", "v_proj", "o_proj", "up_proj"]
    torch.manual_seed(1)
    settings = peft.LoraConfig(
        r=4, lora_alpha=5, target_modules=modules, fan_in_fan_out=name == "gpt2", use_rslora=root,
        task_type="CAUSAL_LM", init_lora_weights=init, layers_to_transform=[1] if init else None,
    )  # fmt: skip
    theirs = peft.get_peft_model(model, settings)
    theirs.save_pretrained(tmp_path / "adapter")
    found, _ = exchange.imported(tmp_path / "adapter", "bytes", tmp_path / "base")
    np.testing.assert_allclose(logits(found.config, found.arrays, TOKENS), their_logits(theirs), atol=1e-4)
