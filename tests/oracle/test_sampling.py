"""The probabilities that a token is drawn with against those of transformers under settings of the same names."""

import numpy as np
import pytest

from byhand.engine import Tensor
from byhand.runtimes.sampling import Sampling, penalised, probabilities
from oracle.torch_reference import torch

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.oracle
TOKENS = [3, 3, 7, 0, 21]


def theirs(logits, sampling):
    """Their processors in the order in which `generate` applies them."""
    process = transformers.generation.logits_process
    chain = [
        process.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty),
        process.TemperatureLogitsWarper(sampling.temperature),
        *([process.TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []),
        *([process.TopPLogitsWarper(sampling.top_p)] if sampling.top_p else []),
        *([process.MinPLogitsWarper(sampling.min_p)] if sampling.min_p else []),
    ]
    scores = torch.tensor(logits)[None]
    for each in chain:
        scores = each(torch.tensor([TOKENS]), scores)
    return torch.softmax(scores, dim=-1)[0].numpy()


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1.0, min_p=0.1), Sampling(1.7, min_p=0.3), Sampling(1.0, repetition_penalty=1.3),
        Sampling(0.7, repetition_penalty=0.8), Sampling(1.2, 9, 0.9, min_p=0.15, repetition_penalty=1.5),
    ],
    ids=str,
)  # fmt: skip
def test_probabilities(sampling):
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(0, 2, 30)
        ours = probabilities(penalised(Tensor(logits), sampling, TOKENS).data, sampling)
        np.testing.assert_allclose(ours, theirs(logits, sampling), rtol=1e-12, atol=1e-15)
