"""Replay: the one compiled loop that walks a plan's table; nothing of Python runs between its kernels.

Compiled once for all shapes and all models: a row is a kernel's number and its arguments.

    memory    the arena, float32        words   the same bytes as int32
    controls  float64: learning rate and the like in, losses and norms out (see `kernels.adamw`)
    signals   int64: counters of the barriers
    blas      int64: addresses of SGEMM, of the system's yield, and of the product of bfloat16 (0: none)
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import inspect

from byhand.runtimes.loops.kernels.adamw import adamw, sum_shares
from byhand.runtimes.loops.kernels.bfloat16 import round_bfloat16
from byhand.runtimes.loops.kernels.causal_self_attention import attention, attention_back
from byhand.runtimes.loops.kernels.cross_entropy import cross_entropy, softmax_loss, softmax_loss_back
from byhand.runtimes.loops.kernels.decoding import embed_row
from byhand.runtimes.loops.kernels.embedding import embed, embed_back, positions_back
from byhand.runtimes.loops.kernels.gelu import bias_gelu, gelu, gelu_back, times_gelu_slope
from byhand.runtimes.loops.kernels.key_value_cache import attend, attend_all
from byhand.runtimes.loops.kernels.layer_norm import normalise, normalise_back, scale_shift, scale_shift_back
from byhand.runtimes.loops.kernels.linear import column_sum, fill_bias, fill_residual, gemm, gemm_bfloat16
from byhand.runtimes.loops.kernels.relu import bias_relu, relu, relu_back
from byhand.runtimes.loops.kernels.residual import accumulate, add_stream, copy, zero
from byhand.runtimes.loops.kernels.row_product import pack, pack_halves, row_product
from byhand.runtimes.loops.kernels.sampling import sample
from byhand.runtimes.loops.kernels.tiled_gemm import tiled_gemm
from byhand.runtimes.loops.native import STOPPED, barrier, compiled, flush_denormals, restore_denormals

RESOURCES = ("memory", "words", "controls", "signals", "blas", "yield_to")

# fmt: off
KERNELS = (
    gemm, fill_bias, fill_residual, column_sum, normalise, normalise_back, scale_shift, scale_shift_back, bias_gelu,
    gelu_back, bias_relu, relu_back, attention, attention_back, embed, embed_back, positions_back, cross_entropy,
    copy, accumulate, zero, sum_shares, adamw, barrier, embed_row, row_product, attend_all, attend, sample,
    round_bfloat16, gemm_bfloat16, pack, pack_halves, add_stream, gelu, times_gelu_slope, relu, softmax_loss,
    softmax_loss_back, tiled_gemm,
)
# fmt: on
OPCODES = {kernel.__name__: i for i, kernel in enumerate(KERNELS)}
FIELDS = {
    kernel.__name__: [p for p in inspect.signature(kernel.py_func).parameters if p not in RESOURCES]
    for kernel in KERNELS
}
WIDTH = 1 + max(map(len, FIELDS.values()))
(GEMM, FILL_BIAS, FILL_RESIDUAL, COLUMN_SUM, NORMALISE, NORMALISE_BACK, SCALE_SHIFT, SCALE_SHIFT_BACK, BIAS_GELU,
 GELU_BACK, BIAS_RELU, RELU_BACK, ATTENTION, ATTENTION_BACK, EMBED, EMBED_BACK, POSITIONS_BACK, CROSS_ENTROPY,
 COPY, ACCUMULATE, ZERO, SUM_SHARES, ADAMW, BARRIER,
 EMBED_ROW, ROW_PRODUCT, ATTEND_ALL, ATTEND, SAMPLE,
 ROUND_BFLOAT16, GEMM_BFLOAT16, PACK, PACK_HALVES, ADD_STREAM, GELU, TIMES_GELU_SLOPE, RELU, SOFTMAX_LOSS,
 SOFTMAX_LOSS_BACK, TILED_GEMM) = range(len(KERNELS))  # fmt: skip


# fmt: off
@compiled
def replay(table, first, last, times, memory, words, controls, signals, blas):
    """Run rows first .. last of the table, that many times over, or until the threads agree to stop (`sample`)."""
    mode = flush_denormals()
    for i in range(times * (last - first)):
        if i % (last - first) == 0 and signals[STOPPED] != 0:
            break
        r = table[first + i % (last - first)]
        op = r[0]
        if op == GEMM:
            gemm(memory, blas, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12])
        elif op == FILL_BIAS:
            fill_bias(memory, r[1], r[2], r[3], r[4])
        elif op == FILL_RESIDUAL:
            fill_residual(memory, r[1], r[2], r[3], r[4], r[5])
        elif op == COLUMN_SUM:
            column_sum(memory, r[1], r[2], r[3], r[4], r[5], r[6])
        elif op == NORMALISE:
            normalise(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == NORMALISE_BACK:
            normalise_back(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == SCALE_SHIFT:
            scale_shift(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == SCALE_SHIFT_BACK:
            scale_shift_back(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])
        elif op == BIAS_GELU:
            bias_gelu(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == GELU_BACK:
            gelu_back(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == BIAS_RELU:
            bias_relu(memory, r[1], r[2], r[3], r[4])
        elif op == RELU_BACK:
            relu_back(memory, r[1], r[2], r[3])
        elif op == ATTENTION:
            attention(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10])
        elif op == ATTENTION_BACK:
            attention_back(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12])
        elif op == EMBED:
            embed(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == EMBED_BACK:
            embed_back(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == POSITIONS_BACK:
            positions_back(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])
        elif op == CROSS_ENTROPY:
            cross_entropy(memory, words, controls, r[1], r[2], r[3], r[4], r[5])
        elif op == COPY:
            copy(memory, r[1], r[2], r[3])
        elif op == ACCUMULATE:
            accumulate(memory, r[1], r[2], r[3])
        elif op == ZERO:
            zero(memory, r[1], r[2], r[3])
        elif op == SUM_SHARES:
            sum_shares(memory, controls, r[1], r[2], r[3], r[4], r[5])
        elif op == ADAMW:
            adamw(memory, controls, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])
        elif op == BARRIER:
            barrier(signals, r[1], r[2], blas[1])
        elif op == EMBED_ROW:
            embed_row(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9])
        elif op == ROW_PRODUCT:
            row_product(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11],
                        r[12], r[13], r[14])
        elif op == ATTEND_ALL:
            attend_all(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12],
                       r[13], r[14])
        elif op == ATTEND:
            attend(memory, words, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12])
        elif op == SAMPLE:
            sample(memory, words, controls, signals, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9])
        elif op == ROUND_BFLOAT16:
            round_bfloat16(memory, r[1], r[2], r[3])
        elif op == GEMM_BFLOAT16:
            gemm_bfloat16(memory, blas, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12])
        elif op == PACK:
            pack(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == PACK_HALVES:
            pack_halves(words, r[1], r[2], r[3], r[4], r[5], r[6], r[7])
        elif op == ADD_STREAM:
            add_stream(memory, r[1], r[2], r[3], r[4])
        elif op == GELU:
            gelu(memory, r[1], r[2], r[3])
        elif op == TIMES_GELU_SLOPE:
            times_gelu_slope(memory, r[1], r[2], r[3])
        elif op == RELU:
            relu(memory, r[1], r[2], r[3])
        elif op == SOFTMAX_LOSS:
            softmax_loss(memory, words, controls, r[1], r[2], r[3], r[4], r[5], r[6])
        elif op == SOFTMAX_LOSS_BACK:
            softmax_loss_back(memory, words, controls, r[1], r[2], r[3], r[4])
        elif op == TILED_GEMM:
            tiled_gemm(memory, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13],
                       r[14], r[15])
    restore_denormals(mode)
# fmt: on
