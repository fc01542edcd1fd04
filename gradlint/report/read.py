"""Reports read back from the files that ``json`` and ``jsonl`` wrote: validated, never trusted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular
from gradlint.base.terminal import clean
from gradlint.base.text import printable, short_text
from gradlint.model.report import (
    SCHEMA_VERSION,
    BaselineUse,
    CacheUse,
    FailOn,
    Report,
    RunError,
    TargetReport,
    TorchVerdict,
    Unchecked,
)
from gradlint.model.sweep import InputSweep, SweepReport, SweepTarget
from gradlint.report._jsonl import RUN, SUMMARY, TARGET

#: Bytes of a file that is read (heuristic: 100,000 findings take 130 MB).
MAX_BYTES = 2**30

#: What is said of a file that ends too early.
_CUT_OFF = "is cut off: the run that wrote it was killed, or the file was not copied whole"

#: Numbers that JSON can't hold, as they are written.
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

#: Half of a surrogate pair, perhaps: msgspec and pydantic take no text with one.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

T = TypeVar("T")

#: Makes the list of the targets of a report out of them, one at a time; ``list`` holds all of them
#: in memory.
Gather = Callable[[Iterable[TargetReport]], MutableSequence[TargetReport]]


def _torch_verdict(value: Any) -> Any:
    """What ``Report.to_dict`` makes of a verdict of torch's, undone."""
    if not isinstance(value, dict):
        return value
    modes = [mode for mode in ("slow", "fast") if mode in value]
    if not modes:
        return None
    words = {key: value[key] for key in ("message", "agreement", "sample") if key in value}
    return {"mode": modes[0], "verdict": value[modes[0]], **words}


_Verdict = Annotated[TorchVerdict | None, BeforeValidator(_torch_verdict)]


@dataclass
class _Target(TargetReport):
    """A target as its file holds it."""

    gradcheck: _Verdict = None
    gradgradcheck: _Verdict = None


@dataclass
class _Header:
    """A report as its file holds it, but for what follows from the rest. The targets come later."""

    gradlint: str
    seed: int
    environment: dict[str, Any]
    targets: Annotated[list[_Target], BeforeValidator(lambda _: [])] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    fail_on: FailOn = "warning"
    settings: dict[str, Any] = field(default_factory=dict)
    errors: list[RunError] = field(default_factory=list)
    stopped: bool = False
    left_out: dict[str, list[str]] = field(default_factory=dict)
    shard: str = ""
    baseline: BaselineUse | None = None
    unchecked: list[Unchecked] = field(default_factory=list)
    cache: CacheUse | None = None


@dataclass
class _SweepTarget(SweepTarget):
    """A swept target as its file holds it."""

    inputs: list[InputSweep] = field(default_factory=list)


@dataclass
class _SweepFile:
    gradlint: str
    seed: int
    environment: dict[str, Any]
    targets: list[_SweepTarget]
    duration_s: float = 0.0


class _Head(msgspec.Struct):
    """What says which kind of file it is; all else is passed over."""

    schema_version: Any = None
    summary: Any = None
    targets: msgspec.Raw = msgspec.Raw()
    type: Any = None


def read_report(path: str, gather: Gather = list) -> Report | SweepReport:
    """The report in the file at ``path``, written as ``json`` or ``jsonl`` by ``gradlint check``,
    or as ``json`` by ``gradlint sweep``.

    Args:
        path: of the file.
        gather: see :data:`Gather`.

    Raises:
        GradlintError: it can't be read, is cut off, is no such report, or one of another schema.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        why = error.strerror or str(error)
        raise GradlintError(
            f"can't be read: {why}", place=clean(path), hint="name a JSON report"
        ) from None
    try:
        return _read(data, gather)
    except GradlintError as error:
        raise GradlintError(error.message, place=clean(path), hint=error.hint) from None


def _read(data: bytes, gather: Gather) -> Report | SweepReport:
    if not data.strip():
        raise GradlintError("is empty", hint="the run that should have written it did not end")
    if _SURROGATE.search(data):
        data = _without_surrogates(data)
    first, _, rest = data.partition(b"\n")
    head = _head(first, lines=True)
    if head is not None and head.type == RUN:
        _check_version(head)
        return _read_lines(first, rest, gather)
    head = _head(data)
    if head is None or (head.summary is None and not memoryview(head.targets).nbytes):
        raise GradlintError("is no report of gradlint", hint=_HOW)
    _check_version(head)
    if head.summary is None:
        sweeps = _validated(_SWEEPS, data)
        return SweepReport(
            list(sweeps.targets),
            sweeps.seed,
            sweeps.environment,
            sweeps.gradlint,
            sweeps.duration_s,
        )
    return _read_whole(data, head.summary, gather)


_NOT_AS_WRITTEN = "is not as gradlint writes it"

#: How to make a file that can be read.
_HOW = "write it with `gradlint check … --report json=report.json` (or jsonl)"


def _head(data: bytes, *, lines: bool = False) -> _Head | None:
    """What kind of file it is; None where it is none of gradlint's, or its first line no JSON."""
    try:
        return msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        return None
    except msgspec.DecodeError as error:
        if lines:
            return None
        if "truncated" in str(error):
            raise GradlintError(_CUT_OFF, hint="run it again") from None
        raise GradlintError(f"is not JSON: {error}", hint=_HOW) from None
    except (RecursionError, UnicodeDecodeError) as error:
        if lines:
            return None
        raise GradlintError(f"is not JSON: {error}", hint=_HOW) from None


def _check_version(head: _Head) -> None:
    if head.schema_version == SCHEMA_VERSION and not isinstance(head.schema_version, bool):
        return
    if head.schema_version is None:
        raise GradlintError("is no report of gradlint: it has no schema_version", hint=_HOW)
    raise GradlintError(
        f"has schema version {short_text(head.schema_version)}, "
        f"and this gradlint reads version {SCHEMA_VERSION}",
        hint="read it with the gradlint that wrote it, or run the check again",
    )


def _read_whole(data: bytes, summary: Any, gather: Gather) -> Report:
    """A report in ``json``, a target after the other: all of it at once takes twice the memory."""
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    targets = parts.pop("targets", msgspec.Raw(b"null"))
    header = _validated(_HEADERS, msgspec.json.encode(parts))
    try:
        entries = msgspec.json.decode(targets, type=list[msgspec.Raw])
    except msgspec.ValidationError as error:
        raise GradlintError(f"{_NOT_AS_WRITTEN}: targets: {error}", hint=_HOW) from None
    targets_read = (
        _as_made(_validated(_TARGETS, bytes(entry), key=f"targets[{number}]"))
        for number, entry in enumerate(entries)
    )
    return _made(header, summary, gather(targets_read))


def _read_lines(first: bytes, rest: bytes, gather: Gather) -> Report:
    """A report in ``jsonl``: the run, its targets, and a summary that says that all are there."""
    header = _validated(_HEADERS, first, "line 1: ")
    summaries: list[Any] = []
    targets = gather(_targets_of(rest, summaries))
    if not summaries:
        raise GradlintError(_CUT_OFF, hint="run it again")
    (summary,) = summaries
    if summary.get("targets") != len(targets):
        raise GradlintError(
            f"lacks targets: its summary counts {short_text(summary.get('targets'))}, "
            f"{len(targets)} are there",
            hint="run it again",
        )
    return _made(header, summary, targets)


def _targets_of(rest: bytes, summaries: list[Any]) -> Iterator[TargetReport]:
    """The targets in the lines after the first; the summary is appended to ``summaries``."""
    for number, line in enumerate(rest.split(b"\n"), start=2):
        if not line.strip():
            continue
        place = f"line {number}: "
        head = _head(line, lines=True)
        if head is None or summaries:
            last = number - 1 == rest.count(b"\n") + 1
            what = _CUT_OFF if last and not summaries else f"{place}is no line of a report"
            raise GradlintError(what, hint="run it again")
        if head.type == TARGET:
            yield _as_made(_validated(_TARGETS, line, place))
        elif head.type == SUMMARY:
            summaries.append(msgspec.json.decode(line))


_HEADERS: TypeAdapter[_Header] = TypeAdapter(_Header)
_TARGETS: TypeAdapter[_Target] = TypeAdapter(_Target)
_SWEEPS: TypeAdapter[_SweepFile] = TypeAdapter(_SweepFile)


def _validated(kind: TypeAdapter[T], data: bytes, place: str = "", key: str = "") -> T:
    try:
        return kind.validate_json(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        for part in wrong["loc"]:
            key += f"[{part}]" if isinstance(part, int) else f".{part}"
        what = f"{key.lstrip('.')}: {wrong['msg']}" if key else wrong["msg"]
        raise GradlintError(f"{place}{_NOT_AS_WRITTEN}: {what}", hint=_HOW) from None


def _as_made(target: _Target) -> TargetReport:
    """``target`` with the numbers that its file held as texts."""
    for finding in target.findings:
        finding.evidence = _with_numbers(finding.evidence)
    return target


def _made(found: _Header, summary: Any, targets: MutableSequence[TargetReport]) -> Report:
    duration = summary.get("duration_s") if isinstance(summary, dict) else None
    return Report(
        targets=targets,
        seed=found.seed,
        environment=found.environment,
        gradlint=found.gradlint,
        duration_s=float(duration) if isinstance(duration, (int, float)) else 0.0,
        fail_on=found.fail_on,
        interrupted=found.interrupted,
        skipped=found.skipped,
        settings=found.settings,
        errors=found.errors,
        stopped=found.stopped,
        left_out=found.left_out,
        shard=found.shard,
        baseline=found.baseline,
        unchecked=found.unchecked,
        cache=found.cache,
    )


def _with_numbers(value: Any) -> Any:
    """``value`` with the numbers that are written as texts."""
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if isinstance(value, dict):
        return {key: _with_numbers(item) for key, item in value.items()}
    return [_with_numbers(item) for item in value] if isinstance(value, list) else value


def _without_surrogates(data: bytes) -> bytes:
    """``data`` with every half of a surrogate pair as the text of its escape."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, dict):
            return {printable(key): plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    try:
        lines = [
            json.dumps(plain(json.loads(line))).encode()
            for line in data.split(b"\n")
            if line.strip()
        ]
        return b"\n".join(lines)
    except ValueError:
        pass
    try:
        return json.dumps(plain(json.loads(data))).encode()
    except (ValueError, RecursionError):
        return data  # no JSON at all, which is said where it is decoded
