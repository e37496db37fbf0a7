"""The laws that every equation obeys, whatever it computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import byhand.book.entries  # noqa: F401 - fills the entries
from byhand.book.entries.contract import ENTRIES
from byhand.book.practice.edits import Asked, mistakes
from byhand.engine import Equation, Tensor, Term, gradcheck, no_grad
from byhand.engine.terms import Index
from byhand.tracing import Gradients, GradientTerms, Trace
from equations.strategies import LAYOUTS, Case

PRECISION = {np.float64: 1e-12, np.float32: 1e-6}


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """Hold numbers against the ones that an independent formula gives."""
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def cotangents(results: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Random cotangents, one in each memory layout in turn."""
    rng = np.random.default_rng(sum(r.size for r in results))
    return tuple(
        LAYOUTS[(k + r.size) % len(LAYOUTS)](np.asarray(rng.standard_normal(r.shape), r.dtype))
        for k, r in enumerate(results)
    )


def check_gradient(equation: Any, case: Case, step: float = 1e-6, then: Any = None) -> None:
    """The derivative agrees with central differences to 1e-6 relative; `then` is applied to the result first."""

    def function(*inputs: Any) -> Any:
        result = equation(*inputs, **case.static)
        return then(result) if then else result

    with no_grad():
        results = tuple(r.data for r in as_tuple(function(*case.inputs)))
    error = gradcheck(function, *case.inputs, d=cotangents(results), step=step)
    assert error <= 1e-6, f"{equation.name}: relative error {error:.1e}"


def check_halves(equation: Equation, case: Case) -> None:
    """Both halves keep precision and shapes, modify nothing, and give the same bits again."""
    for dtype in PRECISION:
        inputs = case.cast(dtype).inputs
        before = [x.copy() for x in inputs]
        result, saved = equation.forward(*inputs, **case.static)
        results = as_tuple(result)
        assert isinstance(saved, tuple)
        for array in (*results, *(s for s in saved if s.dtype.kind == "f")):
            assert array.dtype == dtype, f"{equation.name}: {dtype.__name__} became {array.dtype}"

        d = cotangents(results)
        saved_before, d_before = [s.copy() for s in saved], [x.copy() for x in d]
        gradients = equation.vjp(saved, d if isinstance(result, tuple) else d[0], **case.static)
        assert len(gradients) == len(inputs)
        for x, gradient in zip(inputs, gradients, strict=True):
            if x.dtype.kind != "f":
                assert gradient is None
                continue
            assert (gradient.shape, gradient.dtype) == (x.shape, dtype)

        same((*inputs, *saved, *d), (*before, *saved_before, *d_before))
        again, saved_again = equation.forward(*inputs, **case.static)
        same(as_tuple(again), results)
        gradients_again = equation.vjp(saved_again, d if isinstance(result, tuple) else d[0], **case.static)
        same([g for g in gradients_again if g is not None], [g for g in gradients if g is not None])


def same(actual: Any, expected: Any) -> None:
    """Hold arrays against others, bit for bit."""
    for a, b in zip(actual, expected, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def check_terms(equation: Equation, case: Case, sources: bool = True) -> None:
    """The terms of an element of each result add up to it, and name the very inputs that it is made of."""
    rng = np.random.default_rng(len(case.inputs))
    for dtype, precision in PRECISION.items():
        inputs = case.cast(dtype).inputs
        results = as_tuple(equation.forward(*inputs, **case.static)[0])
        for turn in range(max(3, 2 * len(results))):
            part = turn % len(results)
            result, asked = results[part], {"which": part} if len(results) > 1 else {}
            index = tuple(int(rng.integers(n)) for n in result.shape)
            tree = equation.terms(index, inputs, result, **case.static, **asked)
            error = 0.0 if tree.value == result[index] else abs(tree.value - float(result[index]))
            assert error <= precision * size(tree), f"{equation.name}{index}: {tree.value} for {result[index]}"
            if equation.rule_terms and not part and dtype is np.float64:
                whole = equation.rule_terms(index, inputs, **case.static).value
                assert whole == tree.value or abs(whole - tree.value) <= 1e-9 * size(tree), (
                    f"{equation.name}{index}: {whole}"
                )
            for term in leaves(tree):
                if term.source is not None:
                    which, place = term.source
                    assert term.value == inputs[which][place]
            named = {term.source for term in leaves(tree)} - {None}
            if sources and named and dtype is np.float64:  # a masked weight is made of nothing
                assert_uses(equation, inputs, case.static, part, index, named, rng)
    check_gradient_terms(equation, case)


def check_gradient_terms(equation: Equation, case: Case) -> None:
    """The terms of an element of each gradient add up to it; each leaf is what it names, or a constant."""
    rng = np.random.default_rng(len(case.inputs) + 1)
    for dtype, precision in PRECISION.items():
        gradients, other = (walked_back(equation, case.cast(dtype), seed) for seed in (1, 2))
        for slot, x in enumerate(case.inputs):
            name, index = f"input {slot}", tuple(int(rng.integers(n)) for n in x.shape)
            if x.dtype.kind != "f":
                continue
            (use,) = gradients.terms(name, index)
            error = abs(use.term.value - float(gradients.array(name)[index]))
            scale = max(
                size(use.term), *(float(abs(d).max()) for d in gradients.steps[0].d_results)
            )  # a slope may cancel
            assert error <= precision * scale, f"{equation.name} d {name}{index}"
            for leaf in leaves(use.term):
                if leaf.source is not None:
                    assert leaf.value == element_of(gradients, use, leaf.source), f"{equation.name}: {leaf.label}"
            if says_all(gradients, slot, index):
                (same_place,) = other.terms(name, index)
                constants = [[t.value for t in leaves(u.term) if t.source is None] for u in (use, same_place)]
                assert constants[0] == constants[1], f"{equation.name} d {name}{index}: a number without its place"


def walked_back(equation: Equation, case: Case, seed: int) -> Gradients:
    """Trace the equation on its inputs, moved a little but for seed 1, and walk back from one of its results."""
    rng, tensors = np.random.default_rng(seed), []
    for k, x in enumerate(case.inputs):
        moved = np.asarray(x * (1 + 1e-3 * (seed - 1) * rng.random(x.shape)), x.dtype) if x.dtype.kind == "f" else x
        tensors.append(Tensor(moved, requires_grad=x.dtype.kind == "f", name=f"input {k}"))
    part = sum(x.size for x in case.inputs)
    trace = Trace.of(lambda: (made := as_tuple(equation(*tensors, name="made", **case.static)))[part % len(made)])
    return trace.backward(np.asarray(rng.standard_normal(trace.result.shape), trace.result.dtype))


def element_of(gradients: Gradients, use: GradientTerms, source: tuple[int, Index]) -> float:
    """Return the number that a leaf of a gradient's terms names."""
    which, index = source
    origin = use.origins[which]
    if "saved_by" in origin:
        return float(gradients.trace.saved(origin["saved_by"])[origin["saved"]][index])
    arrays = gradients.by_name if origin["gradient"] else gradients.trace.values
    return float(arrays[origin["name"]][index])


def says_all(gradients: Gradients, slot: int, index: Index) -> bool:
    """Return whether the equation itself says the arithmetic of this gradient."""
    (step,) = gradients.steps
    return step.gradient_term(slot, index) is not None


def wrong_numbers(equation: Equation, case: Case, index: Index, d: Any = None) -> dict[str, float]:
    """Return what typical mistakes make of an element of the result or, given its cotangent d, of d_x."""
    inputs, static, entry = case.inputs, case.static, ENTRIES[equation.name]
    result, saved = equation.forward(*inputs, **static)
    if d is None:
        term, slips = equation.terms(index, inputs, result, **static), entry.mistakes
    else:
        term, slips = equation.gradient_terms(saved, (d,), 0, index, **static), entry.gradient_mistakes
    return {mistake.en: mistake.value for mistake in mistakes(slips, term, Asked(index, inputs, static, d))}


def assert_uses(
    equation: Equation, inputs: Any, static: Any, part: int, index: Any, named: set[Any], rng: np.random.Generator
) -> None:
    """Poison inputs with NaN, one element at a time: the result is poisoned exactly where the element is named."""
    places = [
        (which, place)
        for which, x in enumerate(inputs)
        if x.dtype.kind == "f" and x.ndim
        for place in np.ndindex(x.shape)
    ]
    for k in rng.permutation(len(places))[:12]:
        which, place = places[k]
        poisoned = [x.copy() for x in inputs]
        poisoned[which][place] = np.nan
        result = as_tuple(equation.forward(*poisoned, **static)[0])[part]
        used = bool(np.isnan(result[index]))
        assert used == ((which, place) in named), f"{equation.name}{index} and input {which}{place}: {used}"


def leaves(term: Term) -> Iterator[Term]:
    """Yield the numbers that a tree of terms is made of."""
    if not term.parts:
        yield term
    for part in term.parts:
        yield from leaves(part)


def size(term: Term) -> float:
    """How large the numbers are that make a term: the sum of |terms|, where the term itself may have cancelled."""
    sizes = [size(part) for part in term.parts]
    match term.op:
        case "sum":
            return sum(sizes)
        case "product":
            return float(np.prod(sizes))
        case "ratio":
            return sizes[0] / abs(term.parts[1].value) if term.parts[1].value else 0.0
        case "negative" | "max":
            return max(sizes)
        case "log":  # near 1 the rounding of the argument is all that is left
            return max(abs(term.value), sizes[0] / abs(term.parts[0].value) if term.parts[0].value else 0.0)
        case _:
            return abs(term.value)
