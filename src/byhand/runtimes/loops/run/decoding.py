"""Generation by plan: the prompt fills the KV cache in one plan, then each token replays another.

Sampling is inside, so a run of tokens is one call; runs grow until a call takes about ten milliseconds, which keeps
streaming smooth and makes what Python does between them small. All threads share a token's work; where that does not
pay, because the model is tiny or other programs use the cores, one thread does it alone; short trials decide.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.errors import UNSOUND_LOGITS, ConfigError, NonFiniteError
from byhand.formats.names import Weights
from byhand.formats.registry import FORMATS
from byhand.host import token_array
from byhand.quantities import counted
from byhand.runtimes.loops.machine.blas import find_blas
from byhand.runtimes.loops.place.layout import padded
from byhand.runtimes.loops.program import controls
from byhand.runtimes.loops.program.calls import Buffer
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.autotune import Autotuner
from byhand.runtimes.loops.run.generation_plans import GenerationPlan, cached, decoding_plan, filling_plan
from byhand.runtimes.loops.run.replay import ready_for
from byhand.runtimes.loops.run.runner import Runner
from byhand.runtimes.loops.run.thread_team import team_size
from byhand.runtimes.sampling import COLDEST, Sampling

LONGEST_RUN = 256  # tokens in a call
CALL_SECONDS = 0.01
TOGETHER, ALONE = 0, 1


class LoopsDecoder:
    """Continues streams of tokens with one model, with its weights as they are when `generate` begins.

    model        causal, float32; or a weak reference to it, for decoders that must not keep it alive
    streams      number of texts that are continued side by side
    threads      all cores if not given
    weights      "float32", or "bfloat16": every matrix and table rounded to it, so that half as much is read
    fills        positions of a prompt whose kernels are compiled together with those of a token
    made_by      how many tokens of each stream were drawn by how many threads
    """

    def __init__(
        self,
        model: Any,
        streams: int = 1,
        threads: int | None = None,
        blas: str = "auto",
        weights: Weights = "float32",
        fills: int = 0,
    ) -> None:
        self._model: Callable[[], Any] = model if isinstance(model, weakref.ref) else lambda: model
        config, parameters = self.model.config, self.model.parameters()
        if not config.causal or any(str(p.dtype) != "float32" for p in parameters.values()):
            raise ConfigError("the loops runtime generates with causal float32 models. Use the numpy runtime.")
        self.streams = streams
        self.threads = team_size(threads)
        self.blas = find_blas(blas)
        self.weights = weights
        self.arena = Arena({n: Tensor(p.data) for n, p in parameters.items()}, self.threads, training=False)
        self._inputs = {
            "tokens": Buffer("tokens", (streams, 1), "input", "int32"),
            "position": Buffer("position", (1,), "own", "int32"),
            "drawn": Buffer("drawn", (LONGEST_RUN, streams), "input", "int32"),
            "allowed": Buffer("allowed", (config.vocab_size,), "input"),
        }
        caches = [(streams, *shape, padded(cached(config))) for shape in self.model.cache_shapes()]
        self._caches = [
            (Buffer(f"blocks.{i}.keys", cache, "input"), Buffer(f"blocks.{i}.values", cache, "input"))
            for i, cache in enumerate(caches)
        ]
        self._runner = Runner(self.arena, self.threads, self.blas, controls.UNIFORMS + LONGEST_RUN * streams)
        self.decoding = decoding_plan(
            self.model, self.arena, self._inputs, self._caches, bfloat16_weights=weights == "bfloat16"
        )
        self._filling: dict[int, GenerationPlan] = {fills: self._filled(fills)} if fills else {}
        self._load(self.decoding, *self._filling.values())
        self._packed = False
        self._ways = (ALONE,) if self.decoding.has_python else (TOGETHER, ALONE)
        self.autotuner = Autotuner(1 if self.threads == 1 else len(self._ways))
        self.made_by: Counter[int] = Counter()

    @property
    def model(self) -> Any:
        """The model, which must still exist."""
        model = self._model()
        if model is None:
            raise ConfigError("the decoder's model is gone. Keep a reference to it.")
        return model

    def refresh(self) -> None:
        """Take over the model's weights if they changed, and pack them as loops read them.

        Arrays can be changed in place, so all are compared: packing would take several times as long.
        """
        changed = not self._packed
        self._packed = False
        for name, p in self.model.parameters().items():
            data = FORMATS[self.weights].rounded(p.data) if p.ndim > 1 else p.data
            mine = self.arena.parameters[name].data
            if not np.array_equal(mine, data):
                mine[...] = data
                changed = True
        if changed:
            self._runner.begin()
            table = self.decoding.preparations
            self._runner.replay(table, [(0, len(table))], self.decoding.shares[0])
        self._packed = True

    def generate(
        self, prompts: Any, count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield token ids (n, streams), run by run, until `count` of each stream are drawn; see `Decoder`.

        prompts (streams, P), P at least 1. The text begins with its last seq_len tokens, at positions from 0. With
        learned positions the context stays that: past the window each token fills the cache anew. Else it slides.
        """
        tokens = token_array(prompts, self.model.config.vocab_size)
        if tokens.shape[0] != self.streams:
            raise ConfigError(
                f"the decoder was made for {counted(self.streams, 'stream')}, not for {tokens.shape[0]}."
            )
        rng = np.random.default_rng(sampling.seed)
        window, run = self.model.config.seq_len, 4
        uniforms = np.empty(0)  # drawn from rng, but not used yet
        self._runner.settle()
        self.refresh()
        c = self._runner.controls
        c[controls.TEMPERATURE] = 0.0 if sampling.temperature < COLDEST else sampling.temperature
        c[controls.TOP_K] = sampling.top_k or 0
        c[controls.TOP_P] = 1.0 if sampling.top_p is None else sampling.top_p
        while count > 0:
            context = tokens[:, -window:]
            self._fill(context, allowed)
            room = count if self.model.config.slides else window - context.shape[1] + 1
            while room > 0 and count > 0:
                way = self.autotuner.choose()
                n = min(self.autotuner.units(way, run), room, count)
                uniforms = np.append(uniforms, rng.random(max(0, n * self.streams - uniforms.size)))
                begun = perf_counter()
                drawn = self._run(way, n, uniforms)
                n, seconds = len(drawn), perf_counter() - begun
                sound = int((drawn >= 0).all(axis=1).sum())  # only the last of a run can be unsound
                if sound < n:
                    if sound:
                        yield drawn[:sound]
                    raise NonFiniteError(UNSOUND_LOGITS)
                self.autotuner.note(way, n, seconds)
                self.made_by[1 if self._ways[way] == ALONE else self.threads] += n
                run = max(1, min(LONGEST_RUN, 2 * run, int(CALL_SECONDS * n / seconds)))
                uniforms = uniforms[n * self.streams :]
                tokens = np.concatenate([tokens[:, -window:], drawn.T], axis=1)
                room, count = room - n, count - n
                yield drawn

    def filling(self, length: int) -> GenerationPlan:
        """Return the plan that fills the cache with so many positions; made once."""
        if length not in self._filling:
            self._filling[length] = self._filled(length)
            self._load(self._filling[length])
        return self._filling[length]

    def _filled(self, length: int) -> GenerationPlan:
        shape, end = (self.streams, length), self.decoding.end
        return filling_plan(self.model, self.arena, shape, self._caches, end, self.blas.tiles)

    def _load(self, *plans: GenerationPlan) -> None:
        """Load the kernels of plans; all that are not compiled yet compile together."""
        ready_for([table for plan in plans for table in (plan.alone, plan.preparations, *plan.tables)])

    def time_calls(self, prompts: np.ndarray | None, rounds: int) -> np.ndarray:
        """Return the least ms of each call of the first thread, over some fills of the cache with prompts (B, T).

        Without prompts it is the calls of one token in the middle of the window. The other threads run as always.
        """
        window = self.model.config.seq_len
        context = np.zeros((self.streams, window // 2 + 1), np.int64) if prompts is None else prompts
        self._runner.settle()
        self.refresh()
        self._fill(context, None)
        plan = self.decoding if prompts is None else self.filling(context.shape[1] - 1)

        def run() -> None:
            for share in self.decoding.shares:
                share.array(self._inputs["position"])[0] = window // 2
            self._runner.controls[controls.FIRST] = window // 2
            self._replay(plan, alone=False)

        return self._runner.time_calls(run, rounds)

    def _replay(self, plan: GenerationPlan, alone: bool, times: int = 1) -> None:
        """Run a plan, that many times over or until the threads agree to stop; with steps in Python always alone."""
        runner = self._runner
        runner.begin()
        if plan.has_python and runner.times is None:
            for _ in range(times):
                with np.errstate(all="ignore"):  # what is not finite is found where a token is drawn
                    runner.replay(plan.alone, plan.in_turn, plan.shares[0])
                if runner.signals[controls.STOPPED]:
                    break
        elif alone:
            runner.replay(plan.alone, plan.in_turn, plan.shares[0], times)
        else:
            runner.run(lambda i: runner.replay(plan.shares[i].tables[0], plan.each[i], plan.shares[i], times))

    def _run(self, way: int, n: int, uniforms: np.ndarray) -> np.ndarray:
        """Draw n tokens for each stream, or fewer if a thread had to wait long, in one call for each thread."""
        share = self.decoding.shares[0]
        position = share.array(self._inputs["position"])
        first = self._runner.controls[controls.FIRST] = position[0]
        self._runner.controls[controls.UNIFORMS :][: n * self.streams] = uniforms[: n * self.streams]
        self._replay(self.decoding, self._ways[way] == ALONE, n)
        return share.array(self._inputs["drawn"])[: position[0] - first].astype(np.int64)

    def _fill(self, context: np.ndarray, allowed: Any) -> None:
        """Put all positions but the last into the cache; the last is the first that decoding reads."""
        length = context.shape[1] - 1
        self.blas.set_threads(1)
        if length:
            plan = self.filling(length)
            for name, values in (("tokens", context[:, :-1]), ("position", 0)):
                if name in plan.shares[0].inputs:
                    plan.shares[0].array(plan.shares[0].inputs[name])[...] = values
            plan.write_constants()
            self._replay(plan, self._ways[self.autotuner.choose()] == ALONE)
        share = self.decoding.shares[0]
        share.array(self._inputs["tokens"])[:, 0] = context[:, -1]
        share.array(self._inputs["allowed"])[:] = 1.0 if allowed is None else allowed
        for each in self.decoding.shares:
            each.array(self._inputs["position"])[0] = length
        self.decoding.write_constants()
