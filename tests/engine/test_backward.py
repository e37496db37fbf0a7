import numpy as np
import pytest

from byhand.engine import Equation, Symbol, Tensor, gradcheck, no_grad, registry, walk_back
from byhand.engine.terms import number
from byhand.equations import add, embedding, linear, mix, mul, softmax, split_qkv
from byhand.errors import ShapeError


def leaf(*values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


@pytest.fixture
def two_results():
    symbol = Symbol("x", "x", "(...)", "any array")
    yield Equation(
        name="two_results",
        title="Twice and three times",
        latex="2x, 3x",
        derivative="2 d_0 + 3 d_1",
        inputs=(symbol,),
        result=symbol,
        forward=lambda x: ((2.0 * x, 3.0 * x), ()),
        vjp=lambda saved, d: (2.0 * d[0] + 3.0 * d[1],),
        terms=lambda index, inputs, result: number(0),
    )
    registry.pop("two_results")


def test_a_tensor_added_to_itself():
    x = leaf(3.0, 4.0)
    (x + x).backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [2, 20]


def test_a_tensor_multiplied_with_itself():
    x = leaf(3.0, 4.0)
    (x * x).backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [6, 80]


def test_a_shared_tensor_sums_over_its_uses():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y + x * 3.0 + x
    z.backward(np.ones(1))
    assert (x.grad.tolist(), y.grad.tolist()) == ([9], [2])


def test_a_diamond():
    x = leaf(2.0)
    a = x * x
    left, right = a * 3.0, a * a
    (left + right).backward(np.ones(1))  # 3 x^2 + x^4
    assert x.grad.tolist() == [6 * 2 + 4 * 8]


def test_many_diamonds_cost_no_more_than_their_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(64):  # 2^64 paths
        y = y * 0.5 + y * 0.5
    y.backward(np.ones(1))
    assert x.grad.tolist() == [1]


def test_a_chain_deeper_than_the_stack():
    x = leaf(1.0)
    y = x
    for _ in range(5000):
        y = y + 1.0
    y.backward(np.ones(1))
    assert x.grad.tolist() == [1]
    assert y.data.tolist() == [5001]
    del y  # freeing the graph must not recurse either


def test_a_tensor_with_several_consumers_of_different_kinds():
    x = np.random.default_rng(0).standard_normal((2, 3))
    weight = np.random.default_rng(1).standard_normal((3, 3))

    def function(x):
        return softmax(x) * linear(x, weight) + x

    assert gradcheck(function, x, d=np.random.default_rng(2).standard_normal((2, 3))) < 1e-6


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_some_outputs_of_several_are_used(used):
    x = Tensor(np.arange(12.0).reshape(1, 2, 6), requires_grad=True)
    parts = split_qkv(x, n_heads=1)
    y = sum((parts[k] * float(k + 1) for k in used[1:]), parts[used[0]] * float(used[0] + 1))
    y.backward(np.ones(y.shape))
    expected = np.zeros((1, 2, 6))
    for k in used:
        expected[:, :, 2 * k : 2 * k + 2] = k + 1
    assert x.grad.tolist() == expected.tolist()


def test_one_output_used_twice_and_another_never():
    x = Tensor(np.arange(6.0).reshape(1, 1, 6), requires_grad=True)
    q, _, _ = split_qkv(x, n_heads=1)
    (q * q).backward(np.ones(q.shape))
    assert x.grad.tolist() == [[[0, 2, 0, 0, 0, 0]]]


def test_an_equation_of_two_results(two_results):
    x = leaf(1.0, 2.0)
    double, triple = two_results(x)
    (double + triple * 10.0).backward(np.array([1.0, -1.0]))
    assert x.grad.tolist() == [32, -32]
    triple.backward(np.ones(2))
    assert x.grad.tolist() == [35, -29]


def test_repeated_tokens_add_up():
    table = Tensor(np.zeros((3, 2)), requires_grad=True)
    embedding(table, np.array([1, 1, 2, 1])).backward(np.arange(8.0).reshape(4, 2))
    assert table.grad.tolist() == [[0, 0], [0 + 2 + 6, 1 + 3 + 7], [4, 5]]


def test_broadcasting_sums():
    x, b = leaf(1.0, 2.0, 3.0), leaf(10.0)
    (x * b + b).backward(np.array([1.0, 2.0, 3.0]))
    assert b.grad.tolist() == [1 * 1 + 2 * 2 + 3 * 3 + 6]
    assert x.grad.tolist() == [10, 20, 30]


def test_a_second_backward_adds_the_same_once_more():
    x = leaf(3.0)
    y = x * x
    z = y * y
    z.backward(np.ones(1))
    assert x.grad.tolist() == [4 * 27]
    z.backward(np.ones(1))
    assert x.grad.tolist() == [2 * 4 * 27]
    y.backward(np.ones(1))
    assert x.grad.tolist() == [2 * 4 * 27 + 6]


def test_gradients_add_up_over_graphs():
    x = leaf(3.0)
    (x * 2.0).backward(np.ones(1))
    (x * 5.0).backward(np.ones(1))
    assert x.grad.tolist() == [7]


def test_leaf_gradients_share_no_memory():
    x, y, d = leaf(1.0, 2.0), leaf(3.0, 4.0), np.array([1.0, 1.0])
    (x + y).backward(d)
    assert not np.shares_memory(x.grad, y.grad)
    assert not np.shares_memory(x.grad, d)
    x.grad[0] = 99.0
    assert (y.grad.tolist(), d.tolist()) == ([1, 1], [1, 1])


def test_the_cotangent_of_a_leaf_is_copied():
    x, d = leaf(1.0), np.ones(1)
    x.backward(d)
    x.backward(d)
    assert x.grad.tolist() == [2]
    assert d.tolist() == [1]


def test_an_earlier_gradient_array_is_not_written_into():
    x = leaf(1.0)
    (x * 2.0).backward(np.ones(1))
    earlier = x.grad
    (x * 2.0).backward(np.ones(1))
    assert (earlier.tolist(), x.grad.tolist()) == ([2], [4])


def test_only_leaves_that_ask_get_a_gradient():
    x, constant = leaf(2.0), Tensor(np.array([3.0]))
    middle = x * constant
    (middle * middle).backward(np.ones(1))
    assert x.grad.tolist() == [2 * 6 * 3]
    assert constant.grad is None
    assert middle.grad is None


def test_a_scalar_needs_no_cotangent():
    x = Tensor(np.array(3.0), requires_grad=True)
    (x * x).backward()
    assert x.grad == 6
    assert x.grad.shape == ()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    x = leaf(1.0, 2.0, dtype=dtype)
    y = 3.0 * (x * 2.0 - 1.0) / 7.0 + (1.0 - x)
    y = (-y).reshape(1, 2) @ Tensor(np.ones((2, 1), dtype))
    assert y.dtype == dtype
    y.backward([[1.0]])  # a list takes the result's precision
    assert x.grad.dtype == dtype


def test_walking_back_shows_each_application_once_the_last_one_first():
    x = leaf(2.0)
    y = add(mul(x, x, name="square"), x, name="sum")
    steps = list(walk_back(y, np.ones(1)))
    assert [step.node.name for step in steps] == ["sum", "square"]
    assert [d.tolist() for d in steps[1].d_inputs] == [[2], [2]]
    assert steps[0].d_results[0].tolist() == [1]
    assert list(walk_back(x, np.ones(1))) == []


def test_unused_outputs_have_zero_cotangents_of_their_own_shape_and_type():
    x = Tensor(np.ones((1, 2, 6), np.float32), requires_grad=True)
    _, k, _ = split_qkv(x, n_heads=2)
    (step,) = walk_back(k, np.ones(k.shape, np.float32))
    assert [d.shape for d in step.d_results] == [(1, 2, 2, 1)] * 3
    assert [d.dtype for d in step.d_results] == [np.float32] * 3
    assert [bool(d.any()) for d in step.d_results] == [False, True, False]


def test_a_vector_needs_a_cotangent():
    with pytest.raises(ShapeError, match=r"backward\(\) from shape \(2,\) needs a cotangent"):
        leaf(1.0, 2.0).backward()


def test_a_cotangent_of_another_shape():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match=r"cotangent \(3,\) for a tensor of shape \(2,\)"):
        (x * 2.0).backward(np.ones(3))
    with pytest.raises(ShapeError, match=r"cotangent \(\) for a tensor of shape \(2,\)"):
        (x * 2.0).backward(1.0)


def test_what_was_not_recorded_has_no_way_back():
    x = leaf(1.0)
    with no_grad():
        y = x * 2.0
    with pytest.raises(ShapeError, match="records nothing"):
        y.backward(np.ones(1))
    with pytest.raises(ShapeError, match="records nothing"):
        (Tensor(np.ones(1)) + 1.0).backward(np.ones(1))


def test_attention_with_shared_keys_and_values():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 1, 3, 2))

    def function(x):
        return mix(softmax(x @ np.ones((2, 3))), x)

    assert gradcheck(function, x, d=rng.standard_normal(x.shape)) < 1e-6
