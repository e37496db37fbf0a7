"""`byhand diff OURS THEIRS`: the first array in which a port differs from a trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from byhand.book.port import recording
from byhand.book.port.comparing import Difference, difference
from byhand.book.port.theirs import opened
from byhand.book.words.language import COMMA, Language, Words, preferred
from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional
from byhand.cli.terminal.say import show
from byhand.cli.terminal.shown import shown
from byhand.config import to_dict
from byhand.errors import ConfigError, command

LISTED = 3  # names
SAID = {
    "compared": Words(
        "Compared {n} of {all} arrays in the order of the computation (names of {table}).",
        "按计算顺序比较了 {all} 个数组中的 {n} 个（名称按 {table}）。",
    ),
    "equal": Words(
        "Equal: {exact} exactly, {close} within rounding. Not compared: {rest}.",
        "相同：{exact} 个完全相同，{close} 个在舍入误差内。未比较：{rest} 个。",
    ),
    "first": Words("The first that differs:", "第一个不同的数组："),
    "behind": Words(
        "Behind it, {wrong} of {n} differ; all {before} before it are equal.",
        "其后 {n} 个中有 {wrong} 个不同；之前的 {before} 个都相同。",
    ),
    "unchecked": Words("Not compared, though it is made from them: {names}", "它由未比较的数组得出：{names}"),
    "other": Words(
        "Theirs is a trace of another model, with {settings}.", "对方的数组来自另一个模型，设置为 {settings}。"
    ),
    "unknown": Words("Unknown names: {names}", "未知的名称：{names}"),
}


@dataclass(frozen=True)
class Options:
    """Compare a port's arrays with a trace: the first that differs, in the order of the computation.

    Names are those of the trace's index, or of parameters of transformers, nanoGPT, llm.c, microgpt or
    nn.TransformerEncoderLayer. Exits with 1 if an array differs.
    """

    ours: Positional[Path]
    """The folder that `byhand trace` wrote."""
    theirs: Positional[Path]
    """A folder of .npy files, an .npz or a .safetensors; or another trace."""
    within: float = 0.0
    """Largest difference that counts as none, relative to an array's largest number; 0: 1e-9 for float64, 1e-4 for
    float32, 2e-2 for shorter types."""
    lang: Language | None = None
    """Language; if not given, from LANG."""


def main(arguments: list[str]) -> int:
    """Print the answer; exit code 1 if an array differs."""
    options = parse(Options, arguments, "byhand diff")
    if not 0 <= options.within < math.inf:
        raise ConfigError(f"--within is {options.within}, but must be a positive number. Use 1e-6.")
    are_traces = [(path / recording.INDEX).is_file() for path in (options.ours, options.theirs)]
    if are_traces == [False, True]:
        raise ConfigError(
            f"{options.ours} is no trace, but {options.theirs} is. "
            f"Swap them: {command('byhand', 'diff', options.theirs, options.ours)}"
        )
    ours, lang = recording.read(options.ours), options.lang or preferred()
    if are_traces[1] and (settings := _settings(ours, recording.read(options.theirs))):
        show(SAID["other"].said(lang, settings=settings))
    found = difference(ours, opened(options.theirs), options.within)
    show("\n".join(_lines(found, len(ours.arrays), lang)))
    return 1 if found.wrong else 0


def _settings(ours: recording.Recording, theirs: recording.Recording) -> str:
    """Return the settings in which two models differ."""
    due, found = to_dict(ours.config), to_dict(theirs.config)
    both = {key: (found.get(key), due.get(key)) for key in due | found if found.get(key) != due.get(key)}
    return ", ".join(f"{key} {found} ({due})" for key, (found, due) in both.items())


def _lines(found: Difference, total: int, lang: str) -> Iterator[str]:
    checked = found.checked
    yield SAID["compared"].said(lang, n=len(checked), all=total, table=found.table)
    if not found.wrong:
        exact = sum(each.state == "exact" for each in checked)
        yield SAID["equal"].said(lang, exact=exact, close=len(checked) - exact, rest=total - len(checked))
    else:
        first = checked.index(found.wrong[0])
        yield SAID["first"].said(lang)
        yield from (f"  {line}" for line in checked[first].said(lang).splitlines())
        if found.unchecked:
            yield SAID["unchecked"].said(lang, names=_names(found.unchecked, lang))
        yield SAID["behind"].said(lang, wrong=len(found.wrong) - 1, n=len(checked) - first - 1, before=first)
    if found.unknown:
        yield SAID["unknown"].said(lang, names=_names(found.unknown, lang))


def _names(names: Sequence[str], lang: str) -> str:
    more = f" (+{len(names) - LISTED})" if len(names) > LISTED else ""
    return COMMA.said(lang).join(shown(name[:80]) for name in names[:LISTED]) + more
