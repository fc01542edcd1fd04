"""The calls that :mod:`gradlint.recorded.hook` kept, read without torch and without running code.

A file comes from a process that ran the user's program. What is no call is left out; nothing in a
file can do more than describe numbers.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradlint.recorded.written import MOST_ELEMENTS, MOST_LEAVES

_LENGTHS = struct.Struct(">IQ")

#: Bytes of a header and of the arrays of a call, at most: what the hook keeps of the most leaves,
#: in complex numbers of 16 bytes.
_MOST_HEADER = 1 << 24
_MOST_BODY = MOST_LEAVES * MOST_ELEMENTS * 16


@dataclass
class Operator:
    """An operator that a program called.

    Args:
        kind: "function", "library", "module" or "callable".
        name: its qualified name, or the path of a registered operator.
        module: where it was defined; "" where that is not known.
        file: the file of that module, or "".
        attribute: by what it is found in the module; "" where it can't be found.
        through: the function by which it is called where it has no name, ``pkg.mod:name``.
        callers: modules that called a registered operator, with their files: one of them may have
            registered it.
        libraries: shared libraries of operators that were loaded.
        calls: how many there were, at least.
        looked: how many of them were looked at.
        processes: in how many processes.
        files: of the calls that were kept.
        lost: what was not kept → how often.
        dtypes: of floating and complex tensors.
        devices: of tensors.
        autocast: device and dtype of autocast, where it was on.
        modes: in which modes calls were made that change what is recorded for gradients.
        differentiated: whether a call was made with grad mode on and an input that requires grad.
    """

    kind: str
    name: str
    module: str = ""
    file: str = ""
    attribute: str = ""
    through: str = ""
    callers: list[tuple[str, str]] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    calls: int = 0
    looked: int = 0
    processes: int = 0
    files: list[str] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    autocast: set[str] = field(default_factory=set)
    modes: set[str] = field(default_factory=set)
    differentiated: bool = False

    def contexts(self) -> list[str]:
        """In which contexts it was called, as sentences."""
        dtypes, devices = ", ".join(sorted(self.dtypes)), " and ".join(sorted(self.devices))
        found = [f"Floating tensors were {dtypes} on {devices}."] if dtypes else []
        found += [
            f"It was called under autocast ({text}). GL904 checks that; else it runs without."
            for text in sorted(self.autocast)
        ]
        if self.modes and self.differentiated:
            found.append(f"Some calls were made {' and '.join(sorted(self.modes))}.")
        if not self.differentiated:
            found.append("No call that was kept was made to be differentiated.")
        return found


@dataclass
class Recording:
    """What a program left.

    Args:
        operators: that it called.
        processes: of Python that imported torch.
        unfinished: processes that did not end in order; what they had not written is lost.
        unreadable: files that are no calls.
    """

    operators: list[Operator] = field(default_factory=list)
    processes: int = 0
    unfinished: int = 0
    unreadable: int = 0


def read_recording(folder: str) -> Recording:
    """What lies in ``folder``."""
    found = Recording()
    operators: dict[tuple[str, str, str], Operator] = {}
    counts: dict[tuple[str, str, str], dict[str, tuple[int, int]]] = {}
    started, ended = set(), set()
    for path in sorted(os.path.join(folder, name) for name in os.listdir(folder)):
        kind = path.rpartition(".")[2]
        if kind not in ("call", "start", "end"):
            continue
        header = read_header(path)
        if header is None:
            found.unreadable += 1
            continue
        process = str(header.get("process"))
        if kind == "start":
            started.add(process)
        elif kind == "end":
            ended.add(process)
        rows = header.get("ops", []) if kind == "end" else [header] if kind == "call" else []
        for row in rows:
            operator = _operator(row.get("op"), operators)
            if operator is None:
                found.unreadable += 1
                continue
            if kind == "call":
                operator.files.append(path)
                _note_context(operator, header)
            key = _key(operator)
            calls = row.get("calls", row.get("call", 0))
            both = calls, row.get("looked", calls)
            known = counts.setdefault(key, {})
            known[process] = max(known.get(process, (0, 0)), both)
            for reason, number in row.get("lost", {}).items():
                operator.lost[reason] = max(number, operator.lost.get(reason, 0))
    for key, known in counts.items():
        operators[key].calls = sum(calls for calls, _ in known.values())
        operators[key].looked = sum(looked for _, looked in known.values())
        operators[key].processes = len(known)
    processes = started | {process for known in counts.values() for process in known}
    found.operators = list(operators.values())
    found.processes = len(processes)
    found.unfinished = len(processes - ended)
    return found


def read_header(path: str) -> dict[str, Any] | None:
    """The header of a file; None if it has none."""
    try:
        with open(path, "rb") as file:
            length, _ = _LENGTHS.unpack(file.read(_LENGTHS.size))
            header = json.loads(file.read(length)) if length <= _MOST_HEADER else None
    except (OSError, ValueError, struct.error, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def read_body(path: str) -> bytes:
    """The bytes of the arrays in a file."""
    with open(path, "rb") as file:
        length, count = _LENGTHS.unpack(file.read(_LENGTHS.size))
        file.seek(length, os.SEEK_CUR)
        return file.read(min(count, _MOST_BODY))


def _operator(row: Any, known: dict[tuple[str, str, str], Operator]) -> Operator | None:
    """The operator that a header names."""
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        return None
    made = Operator(
        str(row.get("kind")),
        row["name"],
        str(row.get("module") or ""),
        str(row.get("file") or ""),
        str(row.get("attribute") or ""),
    )
    found = known.setdefault(_key(made), made)
    found.attribute = found.attribute or made.attribute
    found.through = found.through or str(row.get("through") or "")
    for pair in row.get("callers", []):
        if tuple(pair) not in found.callers:
            found.callers.append((str(pair[0]), str(pair[1])))
    found.libraries = found.libraries or [str(path) for path in row.get("libraries", [])]
    return found


def _note_context(operator: Operator, header: dict[str, Any]) -> None:
    context = header.get("context", {})
    requires = False
    for tensor in header.get("tensors", []):
        requires = requires or bool(tensor.get("requires_grad"))
        operator.devices.add(str(tensor.get("device")))
        if any(word in str(tensor.get("dtype")) for word in ("float", "complex")):
            operator.dtypes.add(str(tensor["dtype"]))
    if "autocast" in context:
        operator.autocast.add(str(context["autocast"]))
    if context.get("inference"):
        operator.modes.add("in inference mode")
    elif context.get("grad") is False:
        operator.modes.add("under no_grad")
    if context.get("transform"):
        operator.modes.add("under transforms of torch.func")
    operator.differentiated |= bool(context.get("grad")) and requires


def _key(operator: Operator) -> tuple[str, str, str]:
    """By what operators are told apart: a script has other names in the processes that it
    spawns."""
    return operator.kind, operator.file or operator.module, operator.name


def base_name(operator: Operator) -> str:
    """A name for a file."""
    name = operator.name.rpartition(".<locals>.")[2]
    name = name.removeprefix("torch.ops.") if operator.kind == "library" else name.split(".")[-1]
    return re.sub(r"\W", "_", name) or "op"


def leaves(value: Any) -> Iterator[list[Any]]:
    """The arguments within an argument, as the hook wrote it."""
    kind = value[0]
    if kind in ("list", "tuple"):
        for part in value[1]:
            yield from leaves(part)
    elif kind == "dict":
        for _, part in value[1]:
            yield from leaves(part)
    else:
        yield value
