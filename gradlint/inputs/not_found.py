"""The error for an op without usable inputs: what was tried, and the line to add."""

from __future__ import annotations

import itertools

from gradlint.base.errors import GradlintError
from gradlint.inputs._evidence import TENSOR_KINDS, Evidence

#: Attempts shown at most.
MOST_SHOWN = 8


class NoInputsFound(GradlintError):
    """No arguments were found under which forward runs.

    Args:
        attempts: pairs of arguments and the error that they raised, one per kind of error; those
            under which most code ran come first.
        line_to_add: code that gives the op its inputs, ready to paste and fill in.
        count: how often the op was called, where that is more than ``len(attempts)``.
    """

    def __init__(self, attempts: list[tuple[str, str]], line_to_add: str, count: int = 0) -> None:
        super().__init__("no usable inputs found", hint=line_to_add)
        self.attempts = attempts
        self.line_to_add = line_to_add
        self.count = max(count, len(attempts))

    def __reduce__(self) -> tuple[type[NoInputsFound], tuple[list[tuple[str, str]], str, int]]:
        return NoInputsFound, (self.attempts, self.line_to_add, self.count)


def line_to_add(evidence: list[Evidence], function: bool) -> str:
    """A ``sample_inputs`` method for a Function, an ``--inputs`` option for other ops."""
    values: list[str] = []
    named: list[str] = []
    for owner, items in itertools.groupby(evidence, lambda item: item.name.partition(".")[0]):
        first, *others = items
        if first.name != owner:
            held = (f"{i.name.partition('.')[2]}={_made(i)}" for i in (first, *others))
            values.append(f"SimpleNamespace({', '.join(held)})" if function else "None")
        elif first.passing == "varargs":
            values.append("randn(3, 4)")
        elif first.required:
            values.append(_placeholder(first))
        else:
            continue
        named.append(f"*{owner}" if first.passing == "varargs" else owner)
    if not function:
        return f'--inputs "{", ".join(values)}"'
    names = ", ".join(named)
    made = ", ".join(map(_of_torch, values))
    tail = "," if len(values) == 1 else ""
    return (
        "@staticmethod\n"
        "def sample_inputs():\n"
        f"    # {names or 'no arguments'}\n"
        f"    return ({made}{tail})"
    )


def _made(item: Evidence) -> str:
    return _of_torch(_placeholder(item))


def _of_torch(value: str) -> str:
    return f"torch.{value}" if value.startswith("rand") else value


def _placeholder(item: Evidence) -> str:
    kind = item.ordered_kinds()[0][0]
    if item.path:
        return "'path/to/file'"
    if kind == "index":
        return "randint(0, 3, (3,))"
    if kind == "mask":
        return "rand(3, 4) > 0.5"
    if kind in TENSOR_KINDS:
        sizes = {0: "()", 1: "4", 2: "3, 4", 3: "2, 3, 4", 4: "2, 3, 4, 5"}
        rank = max(item.ranks, key=lambda rank: item.ranks[rank]) if item.ranks else 2
        return f"randn({sizes.get(max(rank, item.least_rank), '3, 4')})"
    usual = {"int": "1", "float": "0.5", "bool": "False", "shape": "(2, 3)", "dict": "{}"}
    if kind == "str":
        return repr(next((value for value in item.values if isinstance(value, str)), "mean"))
    return usual.get(kind, "None")
