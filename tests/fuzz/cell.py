"""Where hostile texts are tried: a process that is watched, limited, and replaced when it dies.

What may happen in it is little: an audit hook notes files, processes, sockets and code, a timer
ends what takes long, and the kernel ends what grows. The limits of expressions are lowered there,
so that a size which slips past them is seen at a thousandth of the cost.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any
from unittest import mock

import torch

from gradlint.base.errors import GradlintError, SpecError
from gradlint.expressions import limits
from gradlint.expressions.arguments import parse_arguments
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate, evaluate_arguments
from gradlint.expressions.limits import ExpressionError
from gradlint.model import resolve
from gradlint.model.events import Event
from gradlint.rules.catalogue import rule_names
from gradlint.running._wire import FrameError, decoded
from gradlint.spec._formula import Program, plain_callable
from gradlint.spec._samples import make_samples
from gradlint.spec.load import loads
from gradlint.spec.plan import sample_labels

#: Processor time that one text may take, in seconds.
SECONDS = 2
#: What a process may hold beyond what it held before: the lowered limits below allow 16 MiB of
#: complex numbers in one evaluation; the rest is for copies inside one operation.
MEGABYTES = 128
LOWERED = {"MAX_ELEMENTS": 2**18, "MAX_TOTAL": 2**20, "MAX_WORK": 2**26}

#: Audit events that no text may cause.
_FORBIDDEN = re.compile(
    r"open|exec|os\.|shutil\.|subprocess\.|socket\.|ctypes\.|marshal\.|pickle\.|code\.|sys\._|"
    r"pty\.|signal\.|urllib\.|webbrowser\.|tempfile\.|glob\.|fcntl\.|mmap\.|import"
)


def environment() -> dict[str, Any]:
    """What names stand for in expressions."""
    made = torch.Generator().manual_seed(0)
    return {
        "x": torch.rand(2, 3, generator=made, dtype=torch.float64),
        "y": torch.rand(3, generator=made, dtype=torch.float64),
        "b": torch.rand(1, 2, 4, 4, generator=made, dtype=torch.float64),
        "i": torch.tensor([1, 0]),
        "m": torch.tensor([[True, False, True], [False, True, True]]),
        "k": 3,
        "n": 10**9,
        "s": "mean",
        "none": None,
        "parts": [torch.ones(2, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)],
    }


def try_expression(text: str) -> str:
    """What is wrong with how ``text`` is treated as an expression; nothing where all is well."""
    given, kept = environment(), environment()
    for run in (
        lambda: evaluate(compile_expression(text, given), given),
        lambda: evaluate_arguments(parse_arguments(text), 0),
    ):
        try:
            run()
        except ExpressionError as error:
            if not 1 <= error.column <= len(text) + 1 or "\n" in error.message:
                return f"badly placed: column {error.column}, {error.message!r}"
    for name, value in given.items():
        for before, now in zip(_tensors(kept[name]), _tensors(value), strict=True):
            if not torch.equal(before, now):
                return f"`{name}` was written to"
    return ""


def try_spec(text: str) -> str:
    """What is wrong with how ``text`` is treated as a spec."""
    try:
        spec = loads(text)
        labels = sample_labels(spec)
        if len(set(labels)) != len(labels):
            return "two samples have the same label"
        if spec.forward is None:
            return ""
        program = Program(spec)
        signature = program.signature()
        for sample in make_samples(spec, spec.places, 0, signature, by_name=False):
            with suppress(ExpressionError):
                plain_callable(program, "formula")(*sample.args, **sample.kwargs)
    except SpecError as error:
        lines = len(re.split(r"\r\n|[\r\n\x85\u2028\u2029]", text)) + 1
        for problem in error.problems:
            if problem.line is not None and not 1 <= problem.line <= lines:
                return f"badly placed: line {problem.line}, {problem.message!r}"
        return "" if error.problems else "refused without a reason"
    except TypeError as error:
        # Python's words for arguments that don't fit the formula.
        return "" if "argument" in str(error) else f"TypeError: {error}"
    return ""


def try_settings(text: str) -> str:
    """What is wrong with how ``text`` is treated as pyproject.toml, and its lines as flags and
    variables of the environment."""
    rules = rule_names()
    pairs = [line.partition("=") for line in text.split("\n")]
    given = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    environ = {f"GRADLINT_{name.upper()}": value for name, value in given.items()}
    with mock.patch.object(resolve, "read_regular", return_value=_encoded(text)):
        for flags, variables in (({}, {}), (given, {}), ({}, environ)):
            try:
                resolve.resolve_settings(
                    flags, rules=rules, cwd="/", environ=variables, warn=lambda _: None
                )
            except GradlintError as error:
                if not error.place or error.exit_code != 2:
                    return f"badly placed: {error}"
    return ""


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def try_frame(text: str) -> str:
    """What is wrong with how the bytes ``text``, in Latin-1, are treated as an event."""
    body = text.encode("latin-1", "replace")
    with suppress(FrameError):
        event = decoded(body)
        if not isinstance(event, Event):
            return f"decoded to {type(event).__name__}"
    return ""


def _tensors(value: Any) -> list[torch.Tensor]:
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, torch.Tensor)]


#: What can be asked of a cell: name → what is wrong with how a text is treated.
ATTEMPTS: dict[str, Callable[[str], str]] = {
    "expression": try_expression,
    "spec": try_spec,
    "settings": try_settings,
    "frame": try_frame,
}


class Cell:
    """One process after another, each of which tries texts until one is too much for it."""

    def __init__(self) -> None:
        self.process = 0

    def verdict(self, attempt: str, text: str) -> str:
        """What the attempt says of ``text``, how the process ended, or nothing: all is well."""
        if not self.process:
            self._start()
        message = json.dumps([attempt, text]).encode() + b"\n"
        try:
            self.requests.write(message)
            self.requests.flush()
            answer = self.answers.readline()
        except BrokenPipeError:
            answer = b""
        if answer.endswith(b"\n"):
            said: str = json.loads(answer)
            if said:
                self.close()
            return said
        return self._ended()

    def _start(self) -> None:
        _warm_up()
        requests, self_writes = os.pipe()
        self_reads, answers = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self_writes)
            os.close(self_reads)
            try:
                _live(requests, answers)
            finally:
                os._exit(3)
        os.close(requests)
        os.close(answers)
        self.requests = os.fdopen(self_writes, "wb")
        self.answers = os.fdopen(self_reads, "rb")

    def _ended(self) -> str:
        status = os.waitpid(self.process, 0)[1]
        self.process = 0
        self.answers.close()
        with suppress(OSError):
            self.requests.close()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGPROF:
                return f"takes more than {SECONDS} s"
            return f"ended by {signal.Signals(number).name}"
        return f"ended with exit code {os.WEXITSTATUS(status)}"

    def close(self) -> None:
        """End the process, if one lives."""
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            self._ended()


_warm = False


def _warm_up() -> None:
    """Import what torch imports on first use, so that no text is blamed for it."""
    global _warm
    if _warm:
        return
    _warm = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in (
            *("conv2d(b, b)", "interpolate(b, 3)", "x.unfold(0, 2, 1)", "x + '", "norm(x)"),
            *("einsum('ij->', x)", "cdist(x, x)", "x @ x", "randn(2) + x", "f''", "x # y"),
            *("matrix_exp(x[:, :2])", "svdvals(x)", "x.to_sparse()", "cross_entropy(x, i)"),
        ):
            try_expression(text)
        try_spec('forward: "x"\ninputs: {x: {shape: [N]}}\n')
        for name in resolve._KINDS:  # pydantic looks at the stack when it reads a type
            try_settings(f"[tool.gradlint]\n{name} = 'x'\n")
        try_frame("x")


def _live(requests: int, answers: int) -> None:
    watch = _Watch()
    watch.start()
    warnings.simplefilter("ignore")
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            name, text = json.loads(line)
            said = watch.over(lambda name=name, text=text: ATTEMPTS[name](text))  # type: ignore[misc]
            os.write(answers, json.dumps(said[:2_000]).encode() + b"\n")
    os._exit(0)


class _Watch:
    """Time, memory and audit events of one process."""

    def __init__(self) -> None:
        self.active = False
        self.events: list[str] = []

    def start(self) -> None:
        for name, value in LOWERED.items():
            setattr(limits, name, value)
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.status = os.open("/proc/self/status", os.O_RDONLY)
        held = self._held("VmData")
        # Far above what is judged below, so that what is too large is known by its size.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (held + 16 * MEGABYTES * 2**20, hard))
        self.peaks = os.open("/proc/self/clear_refs", os.O_WRONLY)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        sys.addaudithook(self._audit)

    def over(self, attempt: Callable[[], str]) -> str:
        """``attempt()``, judged by what it does besides."""
        self.events.clear()
        os.write(self.peaks, b"5")  # the peak of memory is measured from now on
        held = self._held("VmRSS")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.active = True
        try:
            said = attempt()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        self.active = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = (self._held("VmHWM") - held) // 2**20
        if self.events:
            return "audit events: " + ", ".join(self.events[:5])
        if grown > MEGABYTES:
            return f"grows by {grown} MB"
        return said

    def _held(self, key: str) -> int:
        for line in os.pread(self.status, 2**14, 0).decode().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
        raise OSError(f"no {key} in /proc/self/status")

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or not _FORBIDDEN.match(event):
            return
        if event == "import" and args[0].partition(".")[0] in sys.modules:
            return  # torch imports some of its parts when they are first used
        self.active = False  # what is done here causes events of its own
        if not _importing(sys._getframe(1)):
            self.events.append(f"{event}{str(args)[:80]}")
        self.active = True


def _importing(frame: FrameType | None) -> bool:
    """Whether the import of a module, which torch does at leisure, caused an event."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
