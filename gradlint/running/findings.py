"""Findings about how a worker ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradlint.checking.severity import decided
from gradlint.experiments.loading.process_findings import (
    WorkerEnd,
    out_of_memory_finding,
    replaced_code_finding,
)
from gradlint.model.events import FURTHER
from gradlint.model.op import OpRef
from gradlint.model.report import Finding, Grounds, Location, TargetReport
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of
from gradlint.rules.loading import (
    no_usable_inputs,
    passes_only_while_checked,
    process_crashed,
    target_not_loadable,
    timed_out,
)
from gradlint.running._process import Ending
from gradlint.running._stack import Frame, Stack, place
from gradlint.running._worker import CHANNEL_GONE
from gradlint.running.events import (
    Disagreement,
    Exiting,
    Forgery,
    LastWord,
    NoInputs,
    OutOfMemory,
    Raised,
    Replaced,
    Unloadable,
)
from gradlint.targets.source_file import shown_path

#: Rules whose own files import torch, which this process does without.
_OUT_OF_MEMORY = rule_of("loading.out_of_memory")
_PROCESS_STATE_CHANGED = rule_of("loading.process_state_changed")

#: Lines of the op's output that a finding keeps, and characters of each.
_TAIL_LINES = 12
_LINE_CHARACTERS = 200

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: In the output of a process that aborted, these say that memory had run out.
_ALLOCATION = ("std::bad_alloc", "can't allocate memory", "Cannot allocate memory", "MemoryError")

#: What ``except Exception`` does not catch, as attempts at inputs name it.
_NO_EXCEPTIONS = ("SystemExit", "KeyboardInterrupt")


@dataclass(frozen=True)
class Scene:
    """Where a worker ended.

    Args:
        ref: the operator.
        settings: of the run.
        phase: one of ``gradlint.ops.phase.PHASES``.
        current: rule code and sample label that were running, if any.
        stack: the Python stack there, as far as known.
        tail: the last of what was printed.
        memory_mb: MiB that the op was allowed.
        tried: the arguments that were tried last while inputs were looked for.
    """

    ref: OpRef
    settings: Settings
    phase: str
    current: tuple[str, str] | None = None
    stack: Stack = Stack()  # noqa: RUF009 (frozen)
    tail: str = ""
    memory_mb: int | None = None
    tried: str = ""

    @property
    def frame(self) -> Frame | None:
        """The innermost frame of the user's."""
        return self.stack.user_frame(self.home)

    @property
    def home(self) -> str | None:
        """The file of the operator, where known."""
        return self.ref.location.file if self.ref.location is not None else None

    @property
    def method(self) -> str:
        """The phase, or the method that ran while inputs were looked for."""
        if self.phase in ("inputs", "rule"):
            for frame in self.stack.frames:
                if frame.function in ("forward", "backward"):
                    return frame.function
        return self.phase

    @property
    def _rule(self) -> str | None:
        """What was running, as ``--select`` names it: a first look at a further sample belongs to
        all rules of first order."""
        code = self.current[0] if self.current is not None else None
        return None if code == FURTHER else code

    @property
    def end(self) -> WorkerEnd:
        """What the builders of findings are told of it."""
        location, excerpt = place(self.frame, "here")
        return WorkerEnd(
            self.ref.target,
            self.method,
            self.settings,
            self._rule,
            self.current[1] if self.current is not None else None,
            location or relative(self.ref.location),
            excerpt,
            self.stack.user_lines(self.home),
            tail_lines(self.tail),
        )


def final_finding(scene: Scene, last: LastWord | None, ending: Ending) -> Finding:
    """What a worker that did not finish died of.

    Args:
        scene: where it was, as seen from outside.
        last: the event by which it reported its end itself, if it did.
        ending: how the process ended.
    """
    if isinstance(last, (Exiting, Forgery)):
        scene = replace(scene, stack=Stack.of(last.frames) if last.frames else scene.stack)
    elif last is not None:
        account = last.account
        scene = replace(scene, stack=Stack.of(account.frames), phase=account.phase)
    finding = _final(scene, last, ending)
    if scene.phase == "inputs" and scene.method != "inputs":
        return _sought(finding, scene.tried)
    return finding


def _final(scene: Scene, last: LastWord | None, ending: Ending) -> Finding:
    if ending.lost and ending.killed is None:
        return ended_server(scene)
    if ending.killed == "timeout":
        return timed_out.make_finding(scene.end)
    match last:
        case OutOfMemory(account):
            return memory(scene, account.text)
        case Exiting(status):
            return exited(scene, f"called os._exit({status})", status)
        case Replaced(account, names, settings):
            return replaced_code_finding(
                _PROCESS_STATE_CHANGED,
                scene.end,
                account.error,
                account.text,
                names,
                settings=settings,
            )
        case Raised(account):
            return raised(scene, account.error, account.code)
        case Forgery(text):
            return forged(replace(scene, phase=ending.user_phase), text)
    if ending.orphaned:
        return exited(scene, "ended the parent process of its worker")
    if ending.exit_code == CHANNEL_GONE:
        scene = replace(scene, phase=ending.user_phase)
        return exited(scene, "closed or wrote to file descriptors that it did not open")
    return crashed(scene, ending)


def forged(scene: Scene, text: str) -> Finding:
    """GL005 where the op spoke to gradlint in the place of its worker."""
    finding = exited(scene, "interfered with what its worker reports to gradlint")
    finding.message += f": {text}"
    finding.cause_text = (
        "code of the op wrote to a file descriptor that it did not open, or used objects of "
        "gradlint's; what came with it is not counted"
    )
    finding.help = (
        "an op must write only to files that it opens, and leave gradlint's objects alone"
    )
    return finding


def ended_server(scene: Scene) -> Finding:
    """GL005 where the process that starts workers ended twice while the op ran."""
    finding = exited(scene, "ended or stopped the process that starts gradlint's workers")
    finding.message += ", twice, the second time while nothing else ran"
    finding.help = "an op must send no signals to processes that it did not start"
    return finding


def crashed(scene: Scene, ending: Ending) -> Finding:
    """GL005, or GL007 where the way it died points to memory."""
    name = ending.signal_name
    if name == "SIGKILL":
        return memory(scene, "killed by SIGKILL, probably by the system when memory ran out")
    if name == "SIGABRT" and any(word in scene.tail for word in _ALLOCATION):
        return memory(scene, "an allocation failed and the process aborted")
    status = ending.exit_code if name is None else None
    finding = process_crashed.make_finding(scene.end, signal=name, exit_code=status)
    if scene.frame is not None:
        finding.help = "look at what this line calls; an op must report errors by raising"
    return finding


def exited(scene: Scene, what: str, status: int | None = None) -> Finding:
    """GL005 where the op ended the process on purpose."""
    finding = process_crashed.make_finding(scene.end, exit_code=status)
    _, _, where = finding.message.partition("crashed ")
    finding.message = f"{what} {where.rpartition(': ')[0]}"
    finding.cause_text = ""
    finding.help = "an op must report errors by raising an Exception, and leave the process alone"
    return finding


def raised(scene: Scene, error: str, code: int | str | None) -> Finding:
    """GL005 for what ``except Exception`` does not catch: SystemExit, KeyboardInterrupt …

    Args:
        error: the name of the class.
        code: of ``SystemExit``.
    """
    if error != "SystemExit":
        return exited(scene, f"raised {error}, which is not an Exception,")
    status = 0 if code is None else code if isinstance(code, int) else 1
    return exited(scene, f"called sys.exit({'' if code is None else code})", status)


def memory(scene: Scene, text: str) -> Finding:
    """GL007."""
    finding = out_of_memory_finding(
        _OUT_OF_MEMORY, scene.end, limit_mb=scene.memory_mb, message=text
    )
    finding.help += ", or allow it more (--memory)"
    return finding


def wrong_by_itself(
    ref: OpRef, settings: Settings, report: TargetReport, wrong: Sequence[Disagreement]
) -> Finding:
    """GL009: ``report`` is of a pass, and its gradient is ``wrong`` in a process of its own."""
    location = report.location or relative(ref.location)
    excerpt = None
    if location is not None:
        excerpt = place(Frame(location.file, location.line, ""), "defined here")[1]
    numbers = [{name: getattr(item, name) for name in item.__struct_fields__} for item in wrong]
    return passes_only_while_checked.make_finding(
        ref.target,
        settings,
        [item.input for item in wrong],
        numbers,
        sample=report.samples[0].label if report.samples else None,
        location=location,
        excerpt=excerpt,
    )


def unloadable(ref: OpRef, settings: Settings, event: Unloadable) -> Finding:
    """GL001."""
    location = event.location or relative(ref.location)
    excerpt = None
    if location is not None:
        whole, excerpt = place(Frame(location.file, location.line, ""))
        if whole is not None and location.end_column is None:
            location = whole
    finding = target_not_loadable.make_finding(
        ref.target,
        event.message,
        settings,
        error=event.error,
        location=location,
        excerpt=excerpt,
        help=event.hint,
    )
    if event.guessed:
        finding.severity, _ = decided(finding.severity, Grounds(silent=False, guessed=True))
    return finding


def no_inputs(ref: OpRef, settings: Settings, event: NoInputs) -> Finding:
    """GL002: what was tried, what each attempt raised, and the line to add.

    Where every attempt ended the process or ran out of memory, no inputs can help: that is GL005
    or GL007.
    """
    errors = [error for _, error in event.attempts]
    scene = Scene(ref, settings, "forward")
    if errors and all(error.startswith(_NO_EXCEPTIONS) for error in errors):
        kind, _, code = errors[0].partition(": ")
        return _sought(raised(scene, kind, _number(code)))
    if errors and all(any(word in error for word in _ALLOCATION) for error in errors):
        return _sought(memory(scene, errors[0]))
    location = relative(ref.location)
    excerpt = place(Frame(location.file, location.line, ""))[1] if location is not None else None
    return no_usable_inputs.make_finding(
        ref.target,
        event.attempts,
        event.line_to_add,
        settings,
        count=event.count,
        location=location,
        excerpt=excerpt,
    )


def _sought(finding: Finding, tried: str = "") -> Finding:
    finding.evidence["while"] = "inputs were looked for"
    if tried:
        finding.evidence["inputs"] = _CONTROL.sub("", tried)
    return finding


def at_guessed_inputs(finding: Finding, tried: str = "") -> None:
    """Say of ``finding`` that it was made while inputs were looked for: a loop that ends for the
    inputs that the op is meant for may go on forever at others, and sizes grow with values."""
    _sought(finding, tried)
    if finding.code in ("GL006", "GL007"):
        finding.severity, _ = decided(finding.severity, Grounds(silent=False, guessed=True))
        finding.help = f"the inputs were guessed: give others (--inputs); {finding.help}"


def _number(text: str) -> int | str | None:
    return int(text) if text.lstrip("-").isdigit() else text or None


def tail_lines(text: str) -> list[str]:
    """The last lines of what an op printed, without control characters."""
    lines = [_CONTROL.sub("", line)[:_LINE_CHARACTERS] for line in text.split("\n")]
    return [line for line in lines if line.strip()][-_TAIL_LINES:]


def relative(location: Location | None) -> Location | None:
    """``location`` with its file as reports show it."""
    return None if location is None else replace(location, file=shown_path(location.file))
