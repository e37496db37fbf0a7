"""Generation by plan: one plan fills the KV cache with the prompt, then each token replays another.

The plan includes sampling, so a run of tokens is one call; runs grow until a call takes about thirty milliseconds,
which keeps streaming smooth and Python's overhead small. All threads share a token's work, unless that is slower,
because the model is tiny or other programs use the cores: then one thread does it alone. Short trials decide.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.graph.outline import Outline
from byhand.equations.min_p import log_ratio
from byhand.errors import ConfigError
from byhand.formats.names import Weights
from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels.formats.contract import PANELS
from byhand.runtimes.loops.machine.blas import find_blas
from byhand.runtimes.loops.program import controls
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.autotune import Autotuner
from byhand.runtimes.loops.run.generation_plans import Emitted, GenerationPlan, cache_names, decoding, filling, placed
from byhand.runtimes.loops.run.replay import ready_for
from byhand.runtimes.loops.run.runner import Runner
from byhand.runtimes.loops.run.share import Share
from byhand.runtimes.loops.run.taking import take_over
from byhand.runtimes.loops.run.thread_team import team_size
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Slots, Stream

LONGEST_RUN = 256  # tokens in a call
CALL_SECONDS = 0.03  # a call costs 0.1 to 0.3 ms; tokens drawn past a text's end are wasted
TOGETHER, ALONE = 0, 1
FIRST_RUN = 4
IDLE = -1  # position of a slot without a stream


class LoopsDecoder(Slots):
    """Continues streams of tokens with one model; see `Decoder`.

    model    causal, float32
    slots    number of streams side by side
    threads  all cores if not given
    weights  the format to which every matrix and table is rounded, to read less memory
    fills    length of a prompt whose prefill kernels are compiled along with decoding's
    moves    the decoder owns the model's arrays and frees them as it packs them
    """

    ahead = 1  # the last position of a prompt is the first that decoding reads

    def __init__(
        self,
        model: Any,
        slots: int = 1,
        threads: int | None = None,
        weights: Weights = "float32",
        fills: int = 0,
        moves: bool = False,
    ) -> None:
        self.model = model
        config, parameters = model.config, model.parameters()
        if not config.causal or any(str(p.dtype) != "float32" for p in parameters.values()):
            raise ConfigError("the loops runtime generates with causal float32 models. Use the numpy runtime.")
        super().__init__(slots, config)
        self.threads = team_size(threads)
        self.blas = find_blas("tiles")
        self.weights = FORMATS[weights]
        if self.weights not in PANELS:
            raise ConfigError(f"the loops runtime reads no weights of {weights}. Use the numpy runtime.")
        self._moves = moves
        self._inputs = {
            "tokens": Buffer("tokens", (slots, 1), "input", "int32"),
            "position": Buffer("position", (slots,), "own", "int32"),
            "steps": Buffer("steps", (1,), "own", "int32"),
            "drawn": Buffer("drawn", (LONGEST_RUN, slots), "input", "int32"),
            "allowed": Buffer("allowed", (slots, config.vocab_size), "input"),
            "occurred": Buffer("occurred", (slots, config.vocab_size), "input"),
        }
        self._caches = {
            name: Buffer(name, (slots, heads, config.cached, width), "input")
            for names, (heads, width) in zip(cache_names(model), model.cache_shapes(), strict=True)
            for name in names
        }
        decodes = decoding(model, self._inputs, self._caches, self.weights, self.threads)
        fill = self._emitted(fills or 1, decodes.builder)
        kept = {*decodes.parameters, *fill.parameters}
        nothing = {n: Tensor(Outline(p.shape, np.float32)) for n, p in parameters.items() if n in kept}
        self.arena = Arena(nothing, self.threads, training=False)
        settings = controls.SETTINGS * slots
        self.runner = Runner(self.arena, self.threads, self.blas, settings + 3 * LONGEST_RUN * slots)
        # controls: settings by stream; uniform numbers, logits and sums by step and stream
        self._settings = self.runner.controls[:settings].reshape(slots, controls.SETTINGS)
        self._numbers = self.runner.controls[settings:].reshape(3, LONGEST_RUN, slots)
        self.decoding = placed(decodes, self.arena)
        self._filling: dict[tuple[int, bool, bool], GenerationPlan] = {}
        if fills:
            self._filling[fills, False, False] = placed(fill, self.arena, self.decoding.end)
        self._load(self.decoding, *self._filling.values())
        self._ways = (ALONE,) if self.decoding.has_python else (TOGETHER, ALONE)
        self.autotuner = Autotuner(1 if self.threads == 1 else len(self._ways))
        self.positions = np.full(slots, IDLE, np.int64)  # of each stream's next token
        self._run_length = FIRST_RUN

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot: its context is its last seq_len tokens, at positions from 0."""
        if not any(self.streams):
            self.runner.settle()
            self._run_length = FIRST_RUN
            if self.stale:
                take_over(self.model, self.decoding, self.runner, self.weights, self._moves)
                self.stale = False
        sampling, allowed = stream.sampling, stream.allowed
        if stream.by_hand:  # the kernel leaves logits as they are where the likeliest of all is asked for
            sampling, allowed = Sampling(0.0), None
        self._settings[slot, controls.TEMPERATURE] = 0.0 if sampling.greedy else sampling.temperature
        self._settings[slot, controls.TOP_K] = sampling.top_k or 0
        self._settings[slot, controls.TOP_P] = 1.0 if sampling.top_p is None else sampling.top_p
        self._settings[slot, controls.MIN_P] = log_ratio(sampling.min_p or 0)
        self._settings[slot, controls.PENALTY] = sampling.repetition_penalty
        self._settings[slot, controls.SCORED] = stream.scored and not stream.by_hand
        share = self.decoding.shares[0]
        share.array(self._inputs["allowed"])[slot] = 1.0 if allowed is None else allowed
        if sampling.penalises:
            occurred = share.array(self._inputs["occurred"])[slot]
            occurred[:] = 0.0
            occurred[stream.tokens] = 1.0
        super().admit(slot, stream, kept)

    def free(self, slot: int) -> int:
        """Forget a slot's stream: its row is computed, but reads and draws nothing."""
        length = max(super().free(slot), int(self.positions[slot]))
        self.positions[slot] = IDLE
        return length

    def step(self, most: int) -> None:
        """Draw a run of tokens in one call for each thread; of one token if some stream draws by hand.

        With learned positions the context is always the last seq_len tokens: past the window each token refills the
        cache. Without, the window slides.
        """
        running = self.running()
        by_hand = [slot for slot, stream in running.items() if stream.by_hand]
        window, room = self.model.config.seq_len, 1 if by_hand else most
        if not self.model.config.slides:
            for slot, stream in running.items():
                if self.positions[slot] == window:
                    self.fill(slot, stream.tokens[-window:], 0, window - 1)
            room = min(room, window - int(self.positions.max()))
        way = self.autotuner.choose()
        n = min(self.autotuner.units(way, self._run_length), room)
        drawn_by_plan = {slot: stream for slot, stream in running.items() if not stream.by_hand}
        for slot, stream in drawn_by_plan.items():
            self._numbers[0, :n, slot] = stream.uniforms(n)
        begun = perf_counter()
        drawn = self.run(way, n)
        n, seconds = len(drawn), perf_counter() - begun
        with np.errstate(all="ignore"):  # scores of a failed stream are ignored
            scores = self._numbers[1, :n] - np.log(self._numbers[2, :n])
        for slot, stream in drawn_by_plan.items():
            stream.take(drawn[:, slot].tolist(), scores[:, slot].tolist() if stream.scored else ())
        for slot in by_hand:
            running[slot].draw(self._logits(self.decoding)[slot, 0])
            self._place_token(slot, running[slot].tokens[-1])
        self.autotuner.note(way, n, seconds)
        self.made_by[1 if self._ways[way] == ALONE else self.threads] += n
        self._run_length = max(1, min(LONGEST_RUN, 2 * self._run_length, int(CALL_SECONDS * n / seconds)))

    def filling(self, length: int, continues: bool = False, scores: bool = False) -> GenerationPlan:
        """Return the plan that fills the cache with so many positions, from 0 or behind others; made once.

        scores  it goes on to the logits of all
        """
        key = length, continues, scores
        if key not in self._filling:
            made = self._emitted(length, self.decoding.builder, continues, scores)
            self._filling[key] = placed(made, self.arena, self.decoding.end)
            self._load(self._filling[key])
        return self._filling[key]

    def _emitted(self, length: int, decoder: Builder, continues: bool = False, scores: bool = False) -> Emitted:
        sizes = {"slot": 1} | ({"position": length, "count": 1} if continues else {})
        inputs = self._caches | {name: Buffer(name, (size,), "input", "int32") for name, size in sizes.items()}
        return filling(self.model, inputs, length, decoder, self.threads, scores)

    def _load(self, *plans: GenerationPlan) -> None:
        """Load the plans' kernels; compile missing ones together."""
        prepared = [table for plan in plans for each in plan.preparations.values() for *_, table in each]
        ready_for([*prepared, *(table for plan in plans for table in plan.tables)])

    def replay(self, plan: GenerationPlan, alone: bool, times: int = 1) -> None:
        """Run a plan from the streams' positions on, repeatedly or until the threads agree to stop.

        With steps in Python it is always one thread, unless calls are timed.
        """
        runner = self.runner
        for share in self.decoding.shares:  # each thread reads them here
            share.array(self._inputs["position"])[:] = self.positions
            share.array(self._inputs["steps"])[0] = 0

        def replay(share: Share, times: int = times) -> None:
            runner.replay(share.tables[0], plan.parts(share), share, times)

        runner.begin()
        if plan.has_python and runner.times is None:
            for _ in range(times):
                with np.errstate(all="ignore"):  # drawing a token detects values that are not finite
                    replay(plan.alone, 1)
                if runner.signals[controls.STOPPED]:
                    break
        elif alone:
            replay(plan.alone)
        else:
            runner.run(lambda i: replay(plan.shares[i]))

    def run(self, way: int, n: int) -> np.ndarray:
        """Draw n tokens for each stream, or fewer after long waits at barriers, in one call for each thread."""
        share = self.decoding.shares[0]
        self.replay(self.decoding, self._ways[way] == ALONE, n)
        made = int(share.array(self._inputs["steps"])[0])
        self.positions[self.positions >= 0] += made
        return share.array(self._inputs["drawn"])[:made]

    def fill(self, slot: int, context: list[int], begin: int, end: int) -> None:
        """Put positions into the cache; behind all but the last, decoding begins."""
        stream = self.streams[slot]
        scores = stream is not None and stream.unscored
        if end > begin:
            plan = self.given(slot, context[: end + 1], begin, scores)
            self.filled += end - begin
            self.replay(plan, self._ways[self.autotuner.for_other_work] == ALONE)
            if stream is not None and scores:
                stream.score(self._logits(plan)[0, : end - begin])
        if end == len(context) - 1:
            self._place_token(slot, context[-1])
            self.positions[slot] = end
        self.decoding.write_constants()

    def _place_token(self, slot: int, token: int) -> None:
        self.decoding.shares[0].array(self._inputs["tokens"])[slot, 0] = token

    def _logits(self, plan: GenerationPlan) -> np.ndarray:
        """Return the logits (rows, T, V) that a plan ends with, where they lie."""
        assert plan.result is not None
        return plan.shares[0].array(plan.result)

    def given(self, slot: int, context: list[int], kept: int = 0, scores: bool = False) -> GenerationPlan:
        """Return the plan that puts all positions but the last into the cache, with what it reads in its place.

        kept  number already there
        """
        length = len(context) - 1
        more = length - kept
        places = rounded_up(more, self.model.config.cached)
        plan = self.filling(places, kept > 0, scores)
        share = plan.shares[0]
        padded_tokens = context[kept:-1] + context[:1] * (places - more)  # a token of the text: another may be NaN
        positions = np.minimum(np.arange(places) + kept, length) if kept else 0  # within a table's rows
        given = ("tokens", padded_tokens), ("position", positions), ("slot", slot), ("count", more)
        for name, values in given:
            if name in share.inputs:
                share.array(share.inputs[name]).reshape(-1)[:] = values
        plan.write_constants()
        return plan


def rounded_up(length: int, places: int) -> int:
    """Round the length of a fill up to one of a few plans' lengths, by at most a quarter.

    The padding comes last, where no position sees it. A ring that is filled to its end has no room for padding.
    """
    step = max(8, 1 << max(0, length.bit_length() - 3))
    more = -(-length // step) * step
    return more if more < places else places - 1 if length < places else length
