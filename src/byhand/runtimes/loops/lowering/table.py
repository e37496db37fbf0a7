"""The table's layout: a row is a kernel's number and its operands; -1 stands for a step in Python."""

from byhand.runtimes.loops import kernels
from byhand.runtimes.loops.machine.kernel import KERNELS

kernels.load()

NAMES = tuple(sorted(KERNELS))
OPCODES = {name: number for number, name in enumerate(NAMES)}
WIDTH = 1 + max(len(kernel.operands) for kernel in KERNELS.values())
IN_PYTHON = -1
