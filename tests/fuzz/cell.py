"""Where hostile texts are tried: a process that is watched, limited, and replaced when it dies.

What may happen in it is little: an audit hook notes files, processes, sockets and code, a timer
ends what takes long, and the kernel ends what grows. The limits of expressions are lowered there,
so that a size which slips past them is seen at a thousandth of the cost.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
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
from gradlint.spec import _yaml
from gradlint.spec._formula import Program, plain_callable
from gradlint.spec._samples import make_samples
from gradlint.spec.load import load
from gradlint.spec.plan import sample_labels

#: Processor time that one text may take, in seconds.
SECONDS = 2
#: How many times as much it may take when it is tried again, by itself and in a new process. A slow
#: machine, or what torch imports on its first use, is no fault of a text.
PATIENCE = 5
#: Time that may pass on one text, in seconds: far more, as other processes take their share.
WAITS = 60
#: What a process may hold beyond what it held before: the lowered limits below allow 16 MiB of
#: complex numbers in one evaluation; the rest is for copies inside one operation.
MEGABYTES = 128
#: Texts that a process is given at once, at most.
BATCH = 256
_ACCEPTED, _REFUSED = 1, 2  # marks of texts; zero: not judged yet
_PAGE = resource.getpagesize()
LOWERED = {"MAX_ELEMENTS": 2**18, "MAX_TOTAL": 2**20, "MAX_WORK": 2**26}

#: Audit events that no text may cause.
_FORBIDDEN = re.compile(
    r"open|exec|os\.|shutil\.|subprocess\.|socket\.|ctypes\.|marshal\.|pickle\.|code\.|sys\._|"
    r"pty\.|signal\.|urllib\.|webbrowser\.|tempfile\.|glob\.|fcntl\.|mmap\.|import"
)


@functools.cache
def _forbidden(event: str) -> bool:
    return _FORBIDDEN.match(event) is not None


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


#: What an attempt says: what is wrong with how a text is treated, or nothing. That the text was
#: refused, as it should be, is None.
Said = str | None


def try_expression(text: str) -> Said:
    """What is wrong with how ``text`` is treated as an expression."""
    given, kept = _environments()
    refused = 0
    for run in (
        lambda: evaluate(compile_expression(text, given), given),
        lambda: evaluate_arguments(parse_arguments(text), 0),
    ):
        try:
            run()
        except ExpressionError as error:
            refused += 1
            if not 1 <= error.column <= len(text) + 1 or "\n" in error.message:
                return f"badly placed: column {error.column}, {error.message!r}"
    for name, now, before in kept:
        if not torch.equal(before, now) or now.requires_grad:
            return f"`{name}` was written to"
    return None if refused == 2 else ""


@functools.cache
def _environments() -> tuple[dict[str, Any], list[tuple[str, torch.Tensor, torch.Tensor]]]:
    """What names stand for; and each tensor in it, with its name and a copy to compare it with.

    They serve a whole process: a fault ends it, so that what was written to is not used again.
    """
    given = environment()
    return given, [(name, part, part.clone()) for name in given for part in _tensors(given[name])]


def try_spec(text: str) -> Said:
    """What is wrong with how ``text`` is treated as a spec."""
    try:
        with mock.patch.object(_yaml, "read_regular", _reads(text)):
            spec = load("op.yaml")
        labels = sample_labels(spec)
        if len(set(labels)) != len(labels):
            return "two samples have the same label"
        if spec.forward is None:
            return ""
        program = Program(spec)
        signature = program.signature()
        for sample in make_samples(spec, spec.places, 0, signature, by_name=False):
            values = dict(zip(program.inputs, sample.args, strict=False)) | sample.kwargs
            with suppress(ExpressionError):
                made = plain_callable(program, "formula")(*sample.args, **sample.kwargs)
                behind = {"grad_output": made, "output": made, "outputs": (made,)}
                for formula in (program.reference, *program.backward.values()):
                    if formula is not None:
                        program.run(formula, values | behind)
    except SpecError as error:
        lines = len(re.split(r"\r\n|[\r\n\x85\u2028\u2029]", text)) + 1
        for problem in error.problems:
            if problem.line is not None and not 1 <= problem.line <= lines:
                return f"badly placed: line {problem.line}, {problem.message!r}"
        return None if error.problems else "refused without a reason"
    except TypeError as error:
        # Python's words for arguments that don't fit the formula.
        return None if "argument" in str(error) else f"TypeError: {error}"
    return ""


def try_settings(text: str) -> Said:
    """What is wrong with how ``text`` is treated as pyproject.toml, and its lines as flags and
    variables of the environment."""
    rules = rule_names()
    pairs = [line.partition("=") for line in text.split("\n")]
    given = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    environ = {f"GRADLINT_{name.upper()}": value for name, value in given.items()}
    refused = 0
    with mock.patch.object(resolve, "read_regular", _reads(text)):
        for flags, variables in (({}, {}), (given, {}), ({}, environ)):
            try:
                resolve.resolve_settings(
                    flags, rules=rules, cwd="/", environ=variables, warn=lambda _: None
                )
            except GradlintError as error:
                refused += 1
                if not error.place or error.exit_code != 2:
                    return f"badly placed: {error}"
    return None if refused == 3 else ""


def _reads(text: str) -> Callable[[object, int], bytes]:
    """What reads any file as ``text``."""
    return lambda path, limit: text.encode("utf-8", "surrogatepass")


def try_frame(text: str) -> Said:
    """What is wrong with how the bytes ``text``, in Latin-1, are treated as an event."""
    body = text.encode("latin-1", "replace")
    try:
        event = decoded(body)
    except FrameError:
        return None
    return "" if isinstance(event, Event) else f"decoded to {type(event).__name__}"


def _tensors(value: Any) -> list[torch.Tensor]:
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, torch.Tensor)]


#: What can be asked of a cell: name → what is wrong with how a text is treated.
ATTEMPTS: dict[str, Callable[[str], Said]] = {
    "expression": try_expression,
    "spec": try_spec,
    "settings": try_settings,
    "frame": try_frame,
}


class Cell:
    """One process after another, each of which tries texts until one is too much for it."""

    def __init__(self) -> None:
        self.process = 0
        #: Processor time that a text may take in this process.
        self.seconds = SECONDS
        #: One byte for each text of a batch, which outlive the process: the first that is still
        #: zero is that of the text which ended it.
        self.marks = mmap.mmap(-1, BATCH)

    def verdict(self, attempt: str, text: str) -> str:
        """What is wrong with how ``text`` is treated, or nothing: it was accepted or refused."""
        return self.verdicts(attempt, [text])[0] or ""

    def verdicts(self, attempt: str, texts: Sequence[str]) -> list[Said]:
        """What the attempt says of each of ``texts``, or how the process ended over it.

        Many texts go to the process at once, which is what makes a long run quick. Each is timed,
        measured and judged on its own. A fault ends the process, and the texts that follow are
        tried in a new one; so is a text that takes long.
        """
        said: list[Said] = []
        while len(said) < len(texts):
            said += self._batch(attempt, texts[len(said) : len(said) + BATCH], SECONDS)
            if said[-1] == _too_long(SECONDS):
                index = len(said) - 1
                said[index:] = self._batch(attempt, texts[index : index + 1], PATIENCE * SECONDS)
                self.close()  # the next one has less time
        return said

    def _batch(self, attempt: str, texts: Sequence[str], seconds: int) -> list[Said]:
        """Verdicts on the first of ``texts``, up to the first fault."""
        self.seconds = seconds
        if not self.process:
            self._start()
        self.marks[:] = bytes(BATCH)
        try:
            self.requests.write(json.dumps([attempt, texts]).encode() + b"\n")
            self.requests.flush()
            answer = self.answers.readline()
        except BrokenPipeError:
            answer = b""
        judged = self.marks[: len(texts)].rstrip(b"\0")
        said: list[Said] = ["" if mark == _ACCEPTED else None for mark in judged]
        if not answer.endswith(b"\n"):
            said.append(self._ended())
        elif fault := json.loads(answer):
            self.close()
            said.append(fault)
        return said

    def _start(self) -> None:
        _warm_up()
        requests, self_writes = os.pipe()
        self_reads, answers = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self_writes)
            os.close(self_reads)
            try:
                _live(requests, answers, self.marks, self.seconds)
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
                return _too_long(self.seconds)
            if number == signal.SIGALRM:
                return f"waits for more than {WAITS} s"
            return f"ended by {signal.Signals(number).name}"
        return f"ended with exit code {os.WEXITSTATUS(status)}"

    def close(self) -> None:
        """End the process, if one lives."""
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            self._ended()


def _too_long(seconds: int) -> str:
    return f"takes more than {seconds} s"


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
            "unfold(b, 2)",  # torch imports its compiler for shapes alone
        ):
            try_expression(text)
        try_spec('forward: "x"\ninputs: {x: {shape: [N]}}\n')
        for name in resolve._KINDS:  # pydantic looks at the stack when it reads a type
            try_settings(f"[tool.gradlint]\n{name} = 'x'\n")
        try_frame("x")


def _live(requests: int, answers: int, marks: mmap.mmap, seconds: int) -> None:
    watch = _Watch(seconds)
    watch.start()
    warnings.simplefilter("ignore")
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            name, texts = json.loads(line)
            fault: Said = ""
            for index, text in enumerate(texts):
                fault = watch.over(ATTEMPTS[name], text)
                if fault:
                    break
                marks[index] = _REFUSED if fault is None else _ACCEPTED
            os.write(answers, json.dumps((fault or "")[:2_000]).encode() + b"\n")
    os._exit(0)


class _Watch:
    """Time, memory and audit events of one process."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.active = False
        self.events: list[str] = []

    def start(self) -> None:
        for name, value in LOWERED.items():
            setattr(limits, name, value)
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.sizes = os.open("/proc/self/statm", os.O_RDONLY)
        held = int(os.pread(self.sizes, 100, 0).split()[5]) * _PAGE  # data and stack
        # Far above what is judged below, so that what is too large is known by its size.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (held + 16 * MEGABYTES * 2**20, hard))
        self.peaks = os.open("/proc/self/clear_refs", os.O_WRONLY)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.addaudithook(self._audit)

    def over(self, attempt: Callable[[str], Said], text: str) -> Said:
        """``attempt(text)``, judged by what it does besides."""
        self.events.clear()
        os.write(self.peaks, b"5")  # the peak of memory is measured from now on
        held = int(os.pread(self.sizes, 100, 0).split()[1]) * _PAGE
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITS)
        self.active = True
        try:
            said = attempt(text)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        self.active = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - held) // 2**20
        if self.events:
            return "audit events: " + ", ".join(self.events[:5])
        if grown > MEGABYTES:
            return f"grows by {grown} MB"
        return said

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or not _forbidden(event):
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
