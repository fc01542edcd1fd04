"""``gradlint record``: run the user's program, watch its operators, and write a spec for each."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.files import write_whole
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.recorded import hook, watching
from gradlint.recorded.read import Operator, Recording, base_name, read_recording
from gradlint.running.call import learned
from gradlint.running.job import LearnWork
from gradlint.running.news import Running
from gradlint.targets.resolve import EVERY, resolve

#: First words of every spec that is written here; only such a file is ever overwritten unasked.
MARK = "# Recorded by gradlint"

#: Is executed by every Python process of the program, before anything else.
_SITECUSTOMIZE = """\
import os
import sys


def _watch():
    try:
        with open({hook!r}, "rb") as file:
            code = compile(file.read(), "<gradlint record>", "exec")
        found = {{"__name__": "_gradlint_hook"}}
        exec(code, found)
        found["start"]({watching!r})
    except Exception:
        pass


def _step_aside():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # the one whose place this takes
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", own)


_watch()
_step_aside()
"""

#: Folders of installed packages: their modules are named by their names, not by their files.
_INSTALLED = ("site-packages", "dist-packages")

#: Modules without a name by which they could be imported: a program, also in processes of its own.
_PROGRAMS = ("", "__main__", "__mp_main__")


@dataclass
class Outcome:
    """What became of one operator.

    Args:
        operator: it.
        target: how it is named; "" where it can't be.
        path: its spec; "" where there is none.
        samples: in the spec.
        notes: what was not kept, and why there is no spec.
    """

    operator: Operator
    target: str = ""
    path: str = ""
    samples: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass
class Recorded:
    """What came of a program.

    Args:
        exit_code: of the program; 128 + n where signal n ended it.
        recording: what its processes left.
        outcomes: of its operators.
    """

    exit_code: int
    recording: Recording
    outcomes: list[Outcome]

    @property
    def paths(self) -> list[str]:
        """The specs."""
        return [outcome.path for outcome in self.outcomes if outcome.path]


def record(
    command: Sequence[str],
    folder: str,
    settings: Settings,
    *,
    names: Sequence[str] = (),
    force: bool = False,
    on_tick: Callable[[Sequence[Running]], None] | None = None,
) -> Recorded:
    """Run ``command``, and write specs of the operators that it calls to ``folder``.

    Args:
        command: a program and its arguments.
        folder: is made where it is missing.
        settings: the time limit, the seed and the number of workers are read.
        names: modules and functions to record too, ``pkg.mod:Name`` or ``path/file.py:Name``.
        force: whether specs that are there are overwritten, whoever wrote them.
        on_tick: is told which specs are being made.

    Raises:
        GradlintError: the program can't be started, or the folder can't be written.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        scratch = tempfile.mkdtemp(prefix="gradlint-record-")
    except OSError as error:
        raise GradlintError(
            f"can't be made: {error.strerror or error}", place=folder, hint="-o names another one"
        ) from None
    try:
        exit_code = run_program(command, scratch, names)
        recording = read_recording(scratch)
        outcomes = _specs(recording, command, folder, settings, force, on_tick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Recorded(exit_code, recording, outcomes)


def words_of(command: str, place: str) -> list[str]:
    """The words of a command, as a shell reads them.

    Raises:
        GradlintError: it has none, or a quotation mark is missing; ``place`` is the option.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise GradlintError(f"`{command}` can't be read: {error}", place=place) from None
    if not words:
        raise GradlintError("the command is empty", place=place)
    return words


def run_program(command: Sequence[str], scratch: str, names: Sequence[str] = ()) -> int:
    """Run a program that leaves the calls of its operators in ``scratch``.

    It has the standard streams, the terminal and the process group of this process, so that it
    gets what is typed; this process waits for it whatever comes.

    Returns:
        Its exit code; 128 + n where signal n ended it.

    Raises:
        GradlintError: it can't be started.
    """
    ahead = os.path.join(scratch, "ahead")
    os.makedirs(ahead, exist_ok=True)
    with open(os.path.join(ahead, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(_SITECUSTOMIZE.format(hook=hook.__file__, watching=watching.__file__))
    with open(os.path.join(scratch, hook.NAMES), "w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in map(_named, names))
    before = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        hook.FOLDER: scratch,
        "PYTHONPATH": ahead + os.pathsep + before if before else ahead,
    }
    with _waiting() as forward:
        try:
            process = subprocess.Popen(list(command), env=environment)
        except OSError as error:
            raise GradlintError(
                f"can't be started: {error.strerror or error}",
                place=shlex.join(command),
                hint="write the program as in a shell: gradlint record -- python train.py",
            ) from None
        forward(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


def _named(name: str) -> tuple[str, str, str]:
    """A row for :mod:`gradlint.recorded.hook`: a module, or the path of a file, and an attribute.

    Raises:
        GradlintError: ``name`` is none.
    """
    where, colon, attribute = name.replace("::", ":").rpartition(":")
    if not colon or not all(part.isidentifier() for part in attribute.split(".")):
        raise GradlintError(
            f"`{name}` names no module or function",
            place="--of",
            hint="write pkg.mod:Name or path/file.py:Name",
        )
    if not where.endswith(".py"):
        return where, "", attribute
    if not os.path.isfile(where):
        raise GradlintError("no such file", place=f"--of {where}")
    return "", os.path.realpath(where), attribute


@contextmanager
def _waiting() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """In the body Ctrl-C is left to the program, and orders to end are passed on to it.

    The handlers are functions, which a program that is started does not inherit.
    """
    started: list[subprocess.Popen[bytes]] = []

    def leave(number: int, frame: FrameType | None) -> None:
        pass

    def pass_on(number: int, frame: FrameType | None) -> None:
        for process in started:
            process.send_signal(number)

    wanted = {"SIGINT": leave, "SIGQUIT": leave, "SIGTERM": pass_on, "SIGHUP": pass_on}
    numbers = {getattr(signal, name): do for name, do in wanted.items() if hasattr(signal, name)}
    before = {
        number: signal.signal(number, do)
        for number, do in numbers.items()
        if signal.getsignal(number) != signal.SIG_IGN  # nohup
    }
    try:
        yield started.append
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- Specs ---------------------------------------------------------------------------------------


def _specs(
    recording: Recording,
    command: Sequence[str],
    folder: str,
    settings: Settings,
    force: bool,
    on_tick: Callable[[Sequence[Running]], None] | None,
) -> list[Outcome]:
    taken: set[str] = set()
    outcomes, works = [], []
    for operator in sorted(recording.operators, key=lambda item: item.name):
        outcome = Outcome(operator)
        outcomes.append(outcome)
        ref = _reference(operator, settings, outcome)
        if ref is None:
            continue
        outcome.path = _free_path(folder, operator, taken, force, outcome)
        if not outcome.path:
            continue
        first = f"{MARK[2:]} from {_counted(operator)} in `{shlex.join(command)}`."
        header = (first, *operator.contexts())
        works.append(
            (
                outcome,
                LearnWork(
                    ref,
                    settings,
                    tuple(operator.files),
                    folder,
                    header,
                    tuple(_providers(operator)),
                ),
            )
        )
    if works:
        found = learned([work for _, work in works], settings.jobs or 1, on_tick)
        for (outcome, _), result in zip(works, found, strict=True):
            _take(outcome, result)
    return outcomes


def _take(outcome: Outcome, result: dict[str, Any] | GradlintError) -> None:
    """Write what was learned."""
    path, outcome.path = outcome.path, ""
    outcome.notes += [f"{text} ({count}×)" for text, count in outcome.operator.lost.items()]
    if isinstance(result, GradlintError):
        outcome.notes.append(str(result).replace("\n", "; "))
        return
    outcome.notes += result["notes"]
    if not result["text"]:
        return
    try:
        write_whole(path, [result["text"]])
    except OSError as error:
        raise GradlintError(f"can't be written: {error.strerror or error}", place=path) from None
    outcome.path, outcome.samples = path, result["samples"]


def _reference(operator: Operator, settings: Settings, outcome: Outcome) -> OpRef | None:
    """How gradlint names an operator; None, with a note, where it can't."""
    target = target_of(operator)
    if not target:
        outcome.notes.append(_why_unnamed(operator))
        return None
    outcome.target = target
    try:
        refs = resolve(target, settings)
    except GradlintError as error:
        archive = _archive(operator.file)
        outcome.notes.append(
            f"its source lies in the archive {archive}, which gradlint does not find: put that on "
            "PYTHONPATH and record again"
            if archive
            else str(error).replace("\n", "; ")
        )
        return None
    if len(refs) != 1 or refs[0].attribute == EVERY:
        outcome.notes.append(f"`{target}` names {len(refs)} operators")
        return None
    return refs[0]


def target_of(operator: Operator) -> str:
    """The target that names ``operator``: its file where that lies in the current folder, else
    its module; "" where it has no name."""
    if operator.kind == "library":
        return operator.name
    if not operator.attribute or "<locals>" in operator.attribute:
        return ""
    file = operator.file
    if file.endswith(".py") and os.path.isfile(file):
        inside = os.path.relpath(file)
        parts = inside.split(os.sep)
        own = parts[0] != os.pardir and not any(part in _INSTALLED for part in parts)
        if own:
            return f"{inside}:{operator.attribute}".replace(os.sep, "/")
        if operator.module in _PROGRAMS:
            return f"{file}:{operator.attribute}"
    if operator.module in _PROGRAMS:
        return ""
    return f"{operator.module}:{operator.attribute}"


def _why_unnamed(operator: Operator) -> str:
    """Why no target names ``operator``."""
    way = operator.through.partition(":")[2]
    instead = f"; `{way}`, which calls it, is recorded in its place" if way else ""
    if "<locals>" in (operator.attribute or operator.name):
        return f"it is defined inside of a function, where no target can name it{instead}"
    if not operator.attribute:
        return (
            "nothing in its module leads to it, so that no target can name it: something else has "
            f"its name there, as after a decorator or a second definition{instead}"
        )
    return (
        "its code lies in no .py file, as in a notebook or with python -c: move it to one, and "
        "record a program that imports it"
    )


def _archive(file: str) -> str:
    """The archive that a source lies in, as seen from here; "" where it lies in none."""
    while file and not os.path.lexists(file) and file != os.path.dirname(file):
        file = os.path.dirname(file)
        if os.path.isfile(file):
            return os.path.relpath(file)
    return ""


def _providers(operator: Operator) -> Iterator[str]:
    """What may register an operator: modules that called it, and libraries that were loaded."""
    if operator.kind != "library":
        return
    for module, file in operator.callers:
        if module in _PROGRAMS:
            if file:
                yield os.path.relpath(file)
        else:
            yield module
            top = module.partition(".")[0]
            if top != module:
                yield top
    yield from operator.libraries


def _free_path(
    folder: str, operator: Operator, taken: set[str], force: bool, outcome: Outcome
) -> str:
    """A file for a spec; "" where one is there that was not recorded."""
    name = base_name(operator)
    number = 1
    while name in taken:
        number += 1
        name = f"{base_name(operator)}_{number}"
    taken.add(name)
    path = os.path.join(folder, f"{name}.yaml")
    if force or not os.path.exists(path) or _is_recorded(path):
        return path
    outcome.notes.append(f"{path} is there and was not recorded; --force overwrites it")
    return ""


def _is_recorded(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return any(line.startswith(MARK) for line in (file.readline(), file.readline()))
    except (OSError, UnicodeDecodeError):
        return False


def _counted(operator: Operator) -> str:
    """``12 calls``, ``12 calls in 3 processes``, or ``9000 calls (700 were looked at)``."""
    found = f"{operator.calls} call{'' if operator.calls == 1 else 's'}"
    if operator.looked < operator.calls:
        found += f" ({operator.looked} were looked at)"
    return found if operator.processes < 2 else f"{found} in {operator.processes} processes"
