"""What examining an operator reports while it runs: one type per kind of event.

``gradlint.checking.examine`` hands these to a sink. In a worker the sink sends them to the process
that writes the report, which decodes them strictly by these types (``gradlint.running``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from gradlint.model.coverage import FunctionCoverage
from gradlint.model.report import (
    Check,
    Finding,
    Prediction,
    SampleReport,
    TensorFacts,
    TorchVerdict,
    Tried,
)

#: Work that belongs to no rule: begun and concluded as rules are, under these names in place of a
#: rule's code.
ANATOMY = "anatomy"
#: The first look at a further sample, whose label need not be known before.
FURTHER = "further sample"
#: What is kept of a sample that was guessed otherwise, beside the checks that are done.
REGUESSED = "guessed otherwise"
TorchCheck = Literal["gradcheck", "gradgradcheck"]


class Event(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The base of all events; the name of its class is its tag in the data format."""


class Samples(Event, frozen=True):
    """The samples that the op will be run on; comes before anything that is done with them."""

    samples: list[SampleReport]


class Accepts(Event, frozen=True):
    """Which findings the op, or its spec, accepts: code → reason; comes before any sample."""

    ignores: dict[str, str]


class Begin(Event, frozen=True):
    """A rule (``code``), or other work of this name, starts on the sample with this label."""

    code: str
    sample: str


class Elsewhere(Event, frozen=True):
    """The rule ``code`` is run on the sample with this label by another process."""

    code: str
    sample: str


class CheckDone(Event, frozen=True):
    """The rule that was begun has come to a verdict."""

    check: Check


class Found(Event, frozen=True):
    """A rule has found a defect."""

    finding: Finding


class Anatomy(Event, frozen=True):
    """Facts about the tensors of one call."""

    tensors: list[TensorFacts]


class Predicted(Event, frozen=True):
    """What the rules will take on a sample."""

    predictions: list[Prediction]


class Covered(Event, frozen=True):
    """What this worker's calls up to now reached.

    Args:
        functions: the user's functions.
        values: what no sample gives to the op, in words: ``stride != 1``, ``complex``.
        note: why some code, or all, was not watched; empty where it was.
    """

    functions: list[FunctionCoverage]
    values: list[str]
    note: str


class TorchVerdictMade(Event, frozen=True):
    """What torch's own checker says."""

    which: TorchCheck
    verdict: TorchVerdict


class Further(Event, frozen=True):
    """A further sample was looked at; ``sample`` where rules are to run on it."""

    tried: Tried
    sample: SampleReport | None = None


class Reguessed(Event, frozen=True):
    """Another guess takes the place of a sample, since backward is right there and wrong at the
    first: what was found at that counts no longer, and all rules run again.

    Args:
        sample: the new one, under the label of the first.
        note: what was wrong at the first, in a sentence.
    """

    sample: SampleReport
    note: str


class Skip(Event, frozen=True):
    """The rule ``code`` is left out, and why."""

    code: str
    reason: str


class Confirmable(Event, frozen=True):
    """One call of the op on the sample of this label, for another process to repeat.

    Args:
        reason: why it can't be repeated; empty if it can.
        request: the call in JSON, as ``gradlint.ops.bare`` reads it.
        arrays: the bytes of its tensors.
    """

    sample: str
    reason: str
    request: str
    arrays: list[bytes]


class Note(Event, frozen=True):
    """A remark on the target."""

    text: str


#: What ``examine`` is given to report to.
Emit = Callable[[Event], None]
