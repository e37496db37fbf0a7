"""The compiling process turns kernels into object code.

    python -m byhand.runtimes.loops.compiler

It reads kernels' names from standard input, one a line. For each it writes a header line, the size of the object code
and the error if there is none, and then the code. A separate process can be killed at any moment, uses another core,
and leaves nothing in the process that trains, which loads new code as any later start loads it.

Numba optimises nothing here (NUMBA_OPT=0), since it would optimise each function again for whatever calls it. A
kernel and all that it calls become one module of LLVM's, and that is optimised: each of its functions, then the
whole.
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
WAITING = {"yield_to": 1, "sleep": 2}  # addresses behind that of SGEMM
# Functions of the C library that object code may call: mathematics and moves of memory.
EXTERNAL = {"exp", "log", "sqrt", "expf", "logf", "sqrtf", "floor", "floorf", "memset", "memcpy", "memmove"}


def object_code(name: str) -> bytes:
    """Return a kernel's object code; its entry point is the only visible symbol.

    All that it calls has internal linkage: of a symbol that two object files define, the first one loaded would serve
    both, and the bits of a step would depend on what else a process had loaded.
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
        symbol.name = f"internal.{i}"  # Numba counts the functions of a process: its names depend on what came before
    _optimise(module)
    unresolved = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if unresolved := sorted(set(unresolved) - EXTERNAL):
        raise RuntimeError(f"{name} calls {', '.join(unresolved)}, which a process that loads it may lack")
    return _machine().emit_object(module)


def _entry(kernel: Any) -> Any:
    """Return the kernel's entry point: its integers follow the opcode in a row, its arrays are the resources."""
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
    """Read the int64 that lies `index` int64 behind an address."""
    return builder.load(place_of_word(builder, address, ir.Constant(ir.IntType(64), index)))


def _optimise(module: Any) -> None:
    """Apply the passes of -O3 to each function, then to the module: one run would reassociate sums otherwise."""
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
    """Return LLVM's description of this processor; x86 needs absolute addresses in code that is loaded by MCJIT."""
    processor, features = target()
    found = binding.Target.from_default_triple()
    place = "static" if found.name.startswith("x86") else "default"
    return found.create_target_machine(cpu=processor, features=features, opt=3, reloc=place, jit=True)


def main() -> None:
    """Answer names with object code until the process that asks is gone."""
    assert COMPILING, "the compiling process is started by `building`"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks; it ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    names: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            names.put(line.strip())
        os._exit(0)  # the parent is gone: the kernel that is being compiled is for no one

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
