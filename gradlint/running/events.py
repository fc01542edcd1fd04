"""What a worker sends to the process that reports: one type per kind of event.

The events of ``gradlint.model.events`` come from the rules; those here come from the worker itself
and from the other jobs. They are data: the process that reports never runs anything they hold.
"""

from __future__ import annotations

from typing import Any

from gradlint.model.events import (
    Accepts,
    Anatomy,
    Begin,
    CheckDone,
    Confirmable,
    Covered,
    Elsewhere,
    Event,
    Found,
    Further,
    Note,
    Predicted,
    Reguessed,
    Samples,
    Skip,
    TorchVerdictMade,
)
from gradlint.model.op import OpRef
from gradlint.model.report import Confirmation, Location
from gradlint.model.sweep import SweepTarget
from gradlint.native.progress import Progress

#: One level of a Python stack: file, line, function.
FrameRow = tuple[str, int, str]


# -- The worker's life ----------------------------------------------------------------------------
class Hello(Event, frozen=True):
    """The first event: whether the server had loaded torch before."""

    preloaded: bool


class Pid(Event, frozen=True):
    """The process id of a worker that runs under a tool, whose own id is all the parent knows."""

    pid: int


class Done(Event, frozen=True):
    """The job is finished; nothing follows."""


class Turn(Event, frozen=True):
    """One of several operators is begun, that with this number; what follows is about it."""

    number: int


class TurnOver(Event, frozen=True):
    """All is done of the operator whose turn it was."""


# -- The work of a job ----------------------------------------------------------------------------
class Building(Event, frozen=True):
    """How far an extension is that is being compiled."""

    progress: Progress


class Loaded(Event, frozen=True):
    """What is known of the op once its module is imported."""

    kind: str
    location: Location | None


class Unavailable(Event, frozen=True):
    """The op can't run on this machine, and why."""

    reason: str


class Usage(Event, frozen=True):
    """The user's command or specification is wrong; ``error`` names the class of the error."""

    error: str
    message: str
    place: str
    hint: str


class Unloadable(Event, frozen=True):
    """The module can't be imported, or no instance made (becomes GL001).

    Args:
        message, error, location, hint: as :class:`gradlint.targets.load_error.LoadError` has them.
        guessed: whether arguments of a constructor were guessed, and none of the guesses worked.
    """

    message: str
    error: str
    location: Location | None
    hint: str
    guessed: bool = False


class NoInputs(Event, frozen=True):
    """Nothing that was tried as inputs ran (becomes GL002).

    Args:
        attempts: pairs of the arguments tried and the error they raised.
        line_to_add: code that gives the op its inputs.
        count: how often the op was called.
    """

    attempts: list[tuple[str, str]]
    line_to_add: str
    count: int


class Touched(Event, frozen=True):
    """What the worker read, for a verdict that may be kept.

    Args:
        files: their paths, but for what is installed.
        unseen: why these may not be all, in words that complete "it …".
    """

    files: list[str]
    unseen: list[str]


class Refs(Event, frozen=True):
    """The operators of a module that had to be imported to list them."""

    refs: list[OpRef]


class Swept(Event, frozen=True):
    """The sweeps of one operator."""

    targets: list[SweepTarget]


class Disagreement(Event, frozen=True):
    """One input whose gradient is wrong where nothing watches: what backward's gradient predicts
    along one direction, what forward does, and how far the two may be apart."""

    input: str
    claimed: float
    measured: float
    bar: float
    relative_error: float


class Confirmed(Event, frozen=True):
    """What an op that passes does in a process of its own; with "refuted", where it is wrong."""

    confirmation: Confirmation
    wrong: list[Disagreement]


class Result(Event, frozen=True):
    """What another job returned: None, truth values, numbers, texts, lists, and dicts of these."""

    value: Any


# -- How a worker ends where it does not finish ---------------------------------------------------
class Account(Event, frozen=True):
    """An exception that ended a job, in words.

    Args:
        error: the name of its class.
        text: what it says.
        code: of ``SystemExit``.
        phase: the phase, or the last one that ran the user's code.
        frames: the stack, innermost level first.
        traceback: as Python prints it.
    """

    error: str
    text: str
    code: int | str | None
    phase: str
    frames: list[FrameRow]
    traceback: str

    @property
    def line(self) -> str:
        """Class and first line of the text."""
        lines = self.text.splitlines()
        return f"{self.error}: {lines[0]}" if lines else self.error


class Raised(Event, frozen=True):
    """An exception that is not an ``Exception`` came out."""

    account: Account


class OutOfMemory(Event, frozen=True):
    """Memory ran out."""

    account: Account


class OpRaised(Event, frozen=True):
    """The op raised in a call where no rule expects it."""

    account: Account


class Replaced(Event, frozen=True):
    """gradlint failed because the user's code replaced functions that it calls, by name; or, with
    ``settings``, changed settings of the process that it needs."""

    account: Account
    names: list[str]
    settings: bool = False


class Internal(Event, frozen=True):
    """gradlint itself failed."""

    account: Account


class Exiting(Event, frozen=True):
    """The user's code called ``os._exit``: the status, and the stack there."""

    status: int
    frames: list[FrameRow]


class Forgery(Event, frozen=True):
    """Something other than the worker's own code used its channel: what was wrong, and the stack
    there where it is known. The worker sends it, or the parent concludes it."""

    text: str
    frames: tuple[FrameRow, ...] = ()


#: By these a worker says how it ends.
LastWord = Raised | OutOfMemory | OpRaised | Replaced | Internal | Exiting | Forgery

#: What examining an op reports.
Examined = (
    Samples
    | Begin
    | Elsewhere
    | CheckDone
    | Found
    | Further
    | Anatomy
    | Predicted
    | Reguessed
    | TorchVerdictMade
    | Skip
    | Accepts
    | Note
    | Covered
    | Confirmable
)

#: All that may come from a worker.
AnyEvent = (
    Hello
    | Pid
    | Done
    | Turn
    | TurnOver
    | Building
    | Loaded
    | Unavailable
    | Usage
    | Unloadable
    | NoInputs
    | Touched
    | Refs
    | Swept
    | Confirmed
    | Result
    | LastWord
    | Examined
)
