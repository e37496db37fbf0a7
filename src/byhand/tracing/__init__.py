"""Tracing: the values, gradients and applications of one pass, with their names, and the arithmetic of any element.

>>> import byhand as bh
>>> from byhand.tracing import Trace
>>> model = bh.TinyGPT(bh.ModelConfig(vocab_size=5, seq_len=3, d_model=4, n_layers=1, n_heads=2), seed=1)
>>> trace = Trace.of(lambda: model.loss([[1, 2, 3]], [[2, 3, 4]]))
>>> trace.values["blocks.0.attn.weights"].shape
(1, 2, 3, 3)
>>> [a["equation"] for a in trace.as_json()["applications"]][:3]
['embedding', 'add_positional', 'layer_norm']

The arithmetic of an element is a tree of numbers; each leaf read from an array names the element.

>>> term = trace.terms("logits", (0, -1, 2))
>>> term.op, [part.label for part in term.parts[0].parts]
('sum', ['x[0,2,0]', 'W[0,2]'])
>>> abs(term.value - float(trace.values["logits"][0, -1, 2])) < 1e-6
True

The same for a gradient, separately for each use of the tensor, with a central difference in float64.

>>> gradients = trace.backward()
>>> gradients.by_name["wte"].shape
(5, 4)
>>> [(use.equation, use.input) for use in gradients.terms("x", (0, 0, 1))]
[('residual', 'x'), ('layer_norm', 'x')]
>>> abs(gradients.central_difference("wte", (2, 0)) - float(gradients.by_name["wte"][2, 0])) < 1e-6
True

`pass_as_json`, `value_as_json` and `gradient_as_json` return all of this as plain values.
"""

from byhand.tracing.answers import Answer, GradientTerms
from byhand.tracing.gradients import Gradients
from byhand.tracing.plain import gradient_as_json, pass_as_json, value_as_json
from byhand.tracing.questions import Questions
from byhand.tracing.trace import Trace
from byhand.tracing.updates import update_trace

__all__ = [
    "Answer", "GradientTerms", "Gradients", "Questions", "Trace", "gradient_as_json", "pass_as_json", "update_trace",
    "value_as_json",
]  # fmt: skip
