"""The compiling process turns kernels into object code.

    python -m byhand.runtimes.loops.compiler

It reads kernel names from standard input, one per line. For each it writes a header line with the size of the object
code, or the error, and then the code. A separate process can be killed at any moment, uses another core, and leaves
no trace in the training process, which loads new code exactly as later starts do.

Numba's optimiser is off (NUMBA_OPT=0), since it would optimise each function again for every caller. Instead, a
kernel and everything it calls are linked into one LLVM module and optimised: each function, then the module.
"""

from __future__ import annotations

import inspect
import os
import queue
import signal
import sys
import threading
from functools import cache
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from byhand.runtimes.loops.encode.walk import walk
from byhand.runtimes.loops.machine.building import READY
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.machine.machine_code import ENTRY
from byhand.runtimes.loops.machine.native import COMPILING, compiled, place_of_word
from byhand.runtimes.loops.machine.processor import target
from byhand.runtimes.loops.machine.views import view_of

ARRAYS = {
    "memory": types.float32,
    "words": types.int32,
    "controls": types.float64,
    "signals": types.int64,
    "blas": types.int64,
}
WAITING = {"yield_to": 1, "sleep": 2}  # indices after SGEMM's address
# C library functions that object code may call.
EXTERNAL = {"exp", "log", "sqrt", "expf", "logf", "sqrtf", "floor", "floorf", "memset", "memcpy", "memmove"}


def object_code(name: str) -> bytes:
    """Return a kernel's object code; its entry point is the only visible symbol.

    Its callees have internal linkage: if two object files defined a symbol, the first one loaded would serve both,
    and a step's bits would depend on what else the process had loaded.
    """
    entry = walk if name == "walk" else _entry(KERNELS[name].function)
    signature = (types.int64, types.int64)
    entry.compile(signature)
    made = entry.overloads[signature]
    module = binding.parse_assembly(made.library.get_llvm_str())
    module.get_function(made.fndesc.llvm_func_name).name = ENTRY + name
    module.name = name
    internal = [s for s in (*module.functions, *module.global_variables) if not s.is_declaration]
    for i, symbol in enumerate(s for s in internal if s.name != ENTRY + name):
        symbol.linkage = "internal"
        symbol.name = f"internal.{i}"  # Numba numbers the functions of a process, so its names depend on history
    _optimise(module)
    unresolved = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if unresolved := sorted(set(unresolved) - EXTERNAL):
        raise RuntimeError(f"{name} calls {', '.join(unresolved)}, which a process that loads it may lack")
    return _machine().emit_object(module)


def _entry(kernel: Any) -> Any:
    """Return the kernel's entry point, which reads integers behind the opcode in a row, and arrays from resources."""
    parameters = list(inspect.signature(kernel).parameters)
    kinds = tuple(types.Array(ARRAYS[p], 1, "C") if p in ARRAYS else types.int64 for p in parameters)

    @intrinsic
    def invoke(typingctx: Any, kernel: Any, row: Any, resources: Any) -> Any:
        kernel.dispatcher.compile(kinds)
        made = kernel.dispatcher.overloads[kinds]

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, row, resources = args
            values, column = [], 1
            for name, kind in zip(parameters, kinds, strict=True):
                if name in ARRAYS:
                    place = 2 * list(ARRAYS).index(name)
                    data = builder.inttoptr(_number(builder, resources, place), ir.IntType(8).as_pointer())
                    length = _number(builder, resources, place + 1)
                    values.append(view_of(context, builder, kind, data, [length]))
                elif name in WAITING:
                    blas = _number(builder, resources, 2 * list(ARRAYS).index("blas"))
                    values.append(_number(builder, blas, WAITING[name]))
                else:
                    values.append(_number(builder, row, column))
                    column += 1
            context.add_linking_libs([made.library])
            context.call_internal(builder, made.fndesc, made.signature, values)
            return context.get_dummy_value()

        return types.void(kernel, types.int64, types.int64), codegen

    def entry(row: Any, resources: Any) -> None:
        invoke(kernel, row, resources)  # pyright: ignore[reportCallIssue]  (an intrinsic)

    return compiled(entry)


def _number(builder: Any, address: Any, index: int) -> Any:
    """Read the int64 at `index` from an address."""
    return builder.load(place_of_word(builder, address, ir.Constant(ir.IntType(64), index)))


def _optimise(module: Any) -> None:
    """Run the -O3 passes on each function, then on the module: a single run would reassociate sums differently."""
    for function in module.functions:
        if not function.is_declaration:
            builder = _passes()
            builder.getFunctionPassManager().run(function, builder)
    builder = _passes()
    builder.getModulePassManager().run(module, builder)


def _passes() -> Any:
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.slp_vectorization = False
    return binding.create_pass_builder(_machine(), tuning)


@cache
def _machine() -> Any:
    """Return LLVM's target machine for this processor; on x86, MCJIT needs absolute addresses in loaded code."""
    processor, features = target()
    found = binding.Target.from_default_triple()
    place = "static" if found.name.startswith("x86") else "default"
    return found.create_target_machine(cpu=processor, features=features, opt=3, reloc=place, jit=True)


def main() -> None:
    """Answer names with object code until the parent is gone."""
    assert COMPILING, "the compiling process is started by `building`"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps what libraries print out of the answers
    names: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            names.put(line.strip())
        os._exit(0)  # the parent is gone: nobody waits for the current kernel

    threading.Thread(target=listen, daemon=True).start()
    while True:
        name, code, why = names.get(), b"", ""
        try:
            code = object_code(name)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".replace("\n", " ")
        answers.write(READY + f"{len(code)} {why}\n".encode(errors="replace") + code)
        answers.flush()


if __name__ == "__main__":
    main()
