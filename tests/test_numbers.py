"""The numbers of the paper walk-through and of the 2 x 2 matrix core, as byhand computes them.

Each was worked out by other code beforehand; six decimals are stated, and six must agree.
"""

import math

import numpy as np
import pytest

from byhand.engine import Tensor, no_grad
from byhand.equations import (
    adamw,
    add_positional,
    attention_scores,
    causal_softmax,
    cross_entropy,
    embedding,
    layer_norm,
    mix,
    softmax,
)


def shows(actual, expected, digits=6):
    """The numbers are the stated ones when printed with so many decimals."""
    actual = actual.data if isinstance(actual, Tensor) else np.asarray(actual)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.5000001 * 10**-digits)


class TestPaperWalkThrough:
    X = ((0.1, 1.0), (1.0, 0.1), (1.1, 1.1))

    def test_embedding_plus_position(self):
        wte = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        wpe = np.array([[0.1, 0.0], [0.0, 0.1], [0.1, 0.1]])
        shows(add_positional(embedding(wte, np.array([[2, 1, 3]])), wpe), [self.X], digits=15)

    def test_layer_norm(self):
        expected = [[-0.999975, 0.999975], [0.999975, -0.999975], [0, 0]]
        shows(layer_norm(np.array(self.X), eps=1e-5), expected)

    @pytest.mark.parametrize(("token", "gain"), [(0, 1.1e-4), (2, 316)])
    def test_layer_norm_of_two_numbers_hides_its_derivative_or_explodes(self, token, gain):
        _, saved = layer_norm.forward(np.array(self.X))
        jacobian = np.array(
            [layer_norm.vjp(saved, np.eye(6)[2 * token + c].reshape(3, 2))[0][token] for c in range(2)]
        )
        assert np.linalg.norm(jacobian, 2) == pytest.approx(gain, rel=0.005)

    def test_attention_of_the_second_token(self):
        h = np.array([[-1.0, 1.0], [1.0, -1.0]])
        scores = attention_scores(h, h)
        weights = causal_softmax(scores)
        shows(scores.data[1], [-1.414214, 1.414214])
        shows(weights, [[1, 0], [0.055807, 0.944193]])
        shows(mix(weights, h).data[1], [0.888386, -0.888386])

    def test_softmax_and_loss(self):
        logits = np.array([[2.0, 1.0, 0.0, -1.0]])
        p = softmax(logits).data[0]
        shows(p, [0.643914, 0.236883, 0.087144, 0.032059])
        shows(1 / p[2], 11.475217)  # the third exponential is 1, so that its weight is one over the sum
        shows(p / p[2], [7.389056, 2.718282, 1, 0.367879])
        shows(cross_entropy(logits, np.array([1])), 1.440190)


class TestMatrixCore:
    """X = I, W_Q = I, W_K swaps, W_V adds; no mask, one head."""

    @pytest.fixture
    def weights(self):
        arrays = ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]])
        return tuple(Tensor(np.array(a), requires_grad=True) for a in arrays)

    def attend(self, w_q, w_k, w_v):
        x = Tensor(np.eye(2))
        a = softmax(attention_scores(x @ w_q, x @ w_k))
        return a, mix(a, x @ w_v)

    def test_weights_and_output(self, weights):
        a, o = self.attend(*weights)
        shows(a, [[0.330238, 0.669762], [0.669762, 0.330238]])
        shows(o, [[0.330238, 1], [0.669762, 1]])

    def test_the_first_row_as_logits(self, weights):
        _, o = self.attend(*weights)
        logits = Tensor(np.array([[1.0, 0.0]])) @ o
        loss = cross_entropy(logits, np.array([0]))
        loss.backward()
        shows(softmax(logits), [[0.338550, 0.661450]])
        shows(loss, 1.083083)
        leaf = Tensor(logits.data, requires_grad=True)
        cross_entropy(leaf, np.array([0])).backward()
        shows(leaf.grad, [[-0.661450, 0.661450]])
        w_q, w_k, w_v = weights
        shows(w_q.grad, [[0.103450, -0.103450], [0, 0]])
        shows(w_k.grad, [[-0.103450, 0], [0.103450, 0]])
        shows(w_v.grad, [[-0.218436, 0.218436], [-0.443014, 0.443014]])

    def test_both_rows_as_logits(self, weights):
        _, o = self.attend(*weights)
        loss = cross_entropy(o, np.array([0, 1]))
        loss.backward()
        w_q, w_k, w_v = weights
        shows(loss, 0.812341)
        shows(w_q.grad, [[0.051725, -0.051725], [-0.032702, 0.032702]])
        shows(w_k.grad, [[-0.051725, 0.032702], [0.051725, -0.032702]])
        shows(w_v.grad, [[0.030823, -0.030823], [-0.152457, 0.152457]])

    def test_the_exercise_with_an_invented_prediction(self, weights):
        log_p = Tensor(np.log([[0.7, 0.3]]), requires_grad=True)
        loss = cross_entropy(log_p, np.array([0]))
        loss.backward()
        shows(loss, 0.356675)
        assert loss.item() == pytest.approx(-math.log(0.7), rel=1e-15)
        shows(log_p.grad, [[-0.3, 0.3]], digits=15)

        w_q, w_k, w_v = weights
        with no_grad():
            a, _ = self.attend(*weights)
        row = Tensor(a.data[:1])
        shows(row, [[0.330238, 0.669762]])
        mix(row, Tensor(np.eye(2)) @ w_v).backward(log_p.grad)
        shows((w_v - Tensor(w_v.grad) * 0.1), [[1.0099, 0.9901], [0.0201, 0.9799]], digits=4)
        assert w_q.grad is None
        assert w_k.grad is None


def test_two_steps_of_adamw_on_paper():
    """With g = 1 and then -1, bias correction makes the first step lr and the second a nineteenth of it."""
    settings = {"beta1": 0.9, "beta2": 0.999, "eps": 0.0, "weight_decay": 0.0}
    zero = np.zeros(1)
    (theta, m, v), _ = adamw.forward(zero, np.array([1.0]), zero, zero, 0.1, 1, **settings)
    shows(theta, [-0.1], digits=12)
    (theta, m, v), _ = adamw.forward(theta, np.array([-1.0]), m, v, 0.1, 2, **settings)
    shows(m, [-0.01], digits=12)
    shows(theta, [-0.1 + 0.1 * 0.01 / 0.19], digits=12)
