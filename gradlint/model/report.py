"""The data model of a report: plain dataclasses, no torch, nothing but JSON-able values.

Workers send these across a pipe, renderers read them and nothing else. ``to_dict`` gives the
JSON contract; fields are only added within one :data:`SCHEMA_VERSION`.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gradlint.base.errors import CheckFailedError
from gradlint.model.coverage import PhaseCoverage
from gradlint.model.shown import Shown

SCHEMA_VERSION = 1

#: How the note of a check begins, or goes on, that was left out because someone accepts what it
#: finds.
IGNORED_BY_OP, IGNORED_IN_SETTINGS = "ignored by the op", "ignored in pyproject.toml"
ACCEPTED_IN = "accepted in"

#: Why a rule can't judge an operator that runs, but not several times over.
MEMORY_RAN_OUT = (
    "memory ran out in this check, not on the sample: allow more by --memory, or check it with "
    "smaller inputs (--inputs) or smaller parameters"
)

#: How parts of a check's note begin that say what it left out: inputs at which the op is too slow
#: (as gradlint.ops.patience writes it), and sizes for which no time or calls were left.
NOT_TRIED, SIZES_LEFT_OUT = "not tried: ", "further sizes are left out: "

#: In the notes of checks that apply and were skipped: a user can do something about each.
COULD_NOT_RUN = ("not run:", "not tried:", "left out:", "out of memory")

#: Severities, worst first.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

#: Verdicts of a target, worst first.
Verdict = Literal["error", "fail", "inconclusive", "pass", "skipped"]

#: Verdicts of a check: one rule on one sample.
CheckVerdict = Literal["pass", "fail", "inconclusive", "skipped"]

#: What fails a run: findings of this severity or a worse one; "inconclusive" means "warning", and
#: that an inconclusive verdict fails the run too; "uncovered" means "inconclusive", and that an op
#: that passes fails the run if code of its backward never ran.
FailOn = Literal["error", "warning", "info", "inconclusive", "uncovered"]

#: Those by which an inconclusive verdict fails the run.
FAIL_INCONCLUSIVE: tuple[FailOn, ...] = ("inconclusive", "uncovered")


@dataclass(frozen=True, slots=True)
class Location:
    """A span of source. Lines and columns count from 1; ``end_column`` is exclusive."""

    file: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        """``file:line:column``, as editors and terminals link it."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of source around a location, with what the underlined part stands for.

    Args:
        lines: pairs of line number and text, without line ends.
        label: printed behind the carets, such as "returned for `weight`".
    """

    lines: tuple[tuple[int, str], ...]
    label: str = ""


#: Where a defect was seen: at the sample or one of its kind; at other sizes of the same number of
#: axes; where tensors have another number of axes, or none, or no elements; where gradlint made an
#: optional tensor that the given inputs leave out; where all elements of an input are special at
#: once; at extreme magnitudes; under dtypes that are mixed; under a program transform.
Where = Literal[
    "sample",
    "other-size",
    "other-rank",
    "no-dimensions",
    "empty",
    "left-out",
    "special",
    "extreme",
    "mixed-dtypes",
    "transform",
]

#: What else than a wrong backward explains a finding: how far forward iterates, the limits of the
#: measurement, a surrogate that the documentation tells of or that is usual where forward steps, a
#: slope that backward clamps to bounds, a zero by which forward divides, another function that
#: forward computes at arguments that it takes by accident, signs of guessed inputs that it may not
#: be meant for, elements that forward does not read, a number that only backward uses, a tiny bound
#: that gradlint made large, rounding at large magnitudes, numbers that forward keeps in 8 bits for
#: backward, a function among the arguments that was guessed, one that backward calls itself
#: besides, a clamp that keeps forward inside its domain at values that gradlint moved or at its
#: first guess, an operand that broadcasts by accident, a size that forward runs out of, inputs at
#: which forward's own operations have no finite derivative, a value of a parameter that training
#: hardly meets, values far beyond given ones of one sign, random numbers that only backward draws,
#: an argument that only backward depends on, gradients in the tangent space of a group, an input
#: that the documentation calls a constant, one for which a Function inside returns None while
#: nothing says that a gradient is meant, or while gradlint alone asked for it, documentation that
#: speaks of a natural gradient or of relevance, or an orthonormal basis of which only what it spans
#: has the gradient that is returned.
Explanation = Literal[
    "solver",
    "measurement",
    "surrogate",
    "usual",
    "clipped",
    "divisor",
    "other-function",
    "signs",
    "unread",
    "backward-only",
    "guard",
    "rounding",
    "stored",
    "stand-in",
    "called",
    "clamped",
    "clamped-guess",
    "broadcast",
    "degenerate",
    "singular",
    "parameter",
    "far",
    "far-apart",
    "overwritten",
    "estimate",
    "unused",
    "tangent",
    "constant",
    "no-gradient",
    "asked",
    "geometry",
    "attribution",
    "substitute",
    "subspace",
    "undefined",
]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the severity of a finding rests on; ``gradlint.checking.severity`` decides by it.

    Args:
        where: the kind of inputs at which the defect was seen.
        silent: whether a wrong result is returned; False where the op raises.
        relative_error: of the gradient, along the direction where it is largest.
        element_error: of the worst element beyond its error bar, beside its own size.
        beyond_bar: whether an element differs by more than its own error bar; None where none
            could be measured.
        confirmed: whether a cause explains the error in its whole size.
        torch_owned: whether only PyTorch's own code is involved.
        guessed: whether it raises at inputs that were guessed, and others could avoid that.
        chosen: whether it raises where an argument has a value that gradlint chose, and others
            could avoid that: one that the code knows, or one that it may take by accident.
        refused: whether the op says openly that it does not support what was asked of it.
        explained: what else explains the difference, if anything does.
        converged: the relative error that would have been seen where forward converges further, and
            the gradient agrees; None where that was not measured.
    """

    where: Where = "sample"
    silent: bool = True
    relative_error: float | None = None
    element_error: float | None = None
    beyond_bar: bool | None = None
    confirmed: bool = False
    torch_owned: bool = False
    guessed: bool = False
    chosen: Literal["", "known", "by accident"] = ""
    refused: bool = False
    explained: Explanation | None = None
    converged: float | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """``text`` takes the place of a span of source; of nothing where that is empty."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the source with which a target passes.

    Args:
        titles: what it changes, a sentence each without its full stop.
        diff: the change as a unified diff, with paths relative to the working directory.
        replacements: the same, span by span, in the order of the file.
        checks: how many checks pass with it.
        tried: how many changes were tried until this one was found.
        notes: what a reader must know before taking it, such as that it is slower.
    """

    titles: list[str]
    diff: str
    replacements: list[Replacement]
    checks: int
    tried: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Script:
    """A program that shows a finding with PyTorch and the user's own module alone.

    Args:
        path: where it is, relative to the working directory.
        text: what it says.
    """

    path: str
    text: str


@dataclass(slots=True)
class Finding:
    """One defect observed.

    ``evidence`` holds numbers and short texts. Keys that renderers treat specially:
    ``elements`` (a list of ``{"index": [...], "returned": x, "measured": y, "error": z}``,
    shown as a table), ``error_map`` (``shape``, flat ``positions`` and ``errors`` of all elements
    that were measured, drawn by ``html``), ``original`` (the text of an exception, kept as it
    was), ``traceback`` (a list of lines), ``output_tail`` (a list of lines the op printed).
    All other keys are shown as ``key  value``. ``follows`` is the code of the finding that
    this one is a consequence of, if any; its own code where that is the same fault in another
    input. ``severity`` is at first the highest that the rule allows
    here; :mod:`gradlint.checking.severity` lowers it to what ``grounds`` bear. ``baselined`` says
    whether it is in the baseline of the run, and so does not fail it. ``fix`` is a change that
    mends it, together with all else that the target fails of, where one was asked for and found.
    ``script`` shows it without gradlint, where one was asked for.
    """

    code: str
    name: str
    severity: Severity
    message: str
    cause: str | None = None
    cause_text: str = ""
    input: str | None = None
    output: str | None = None
    index: list[int] | None = None
    location: Location | None = None
    excerpt: Excerpt | None = None
    related: list[Location] = field(default_factory=list)
    evidence: dict[str, Any] = field(default_factory=dict)
    help: str = ""
    sample: str | None = None
    seed: int | None = None
    reproduce: str = ""
    follows: str | None = None
    grounds: Grounds = field(default_factory=Grounds)
    baselined: bool = False
    fix: Fix | None = None
    script: Script | None = None


@dataclass(slots=True)
class Argument:
    """One argument of a sample. Tensors have a shape; other values a ``value`` text."""

    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    device: str | None = None
    stride: list[int] | None = None
    requires_grad: bool = False
    value: str | None = None


@dataclass(slots=True)
class SampleReport:
    """The arguments an op was run on.

    ``origin``: inferred, given, --inputs, sample_inputs or spec.
    """

    label: str
    origin: str
    args: list[Argument] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tried:
    """A further sample, on which only the gradient was looked at.

    ``label`` completes a sentence, as in "with stride=2". ``verdict``: "right", "wrong", "raised"
    (by backward), "not finite", "refused" (by forward), "accepted by accident" or "undecided".
    """

    label: str
    verdict: str
    forward_calls: int = 0
    backward_calls: int = 0
    duration_s: float = 0.0


@dataclass(slots=True)
class InputPower:
    """How sharply one input was judged.

    Args:
        name: of the input.
        verdict: "agrees", "differs", "unsure" or "rounded" (agrees, to fewer digits than seen).
        resolution: smallest relative error of its gradient that would have been seen.
        element_resolution: smallest error of a single element that would have been seen, relative
            to the largest one.
        noise_factor: measured noise over that of rounding the outputs once.
    """

    name: str
    verdict: str
    resolution: float
    element_resolution: float
    noise_factor: float


@dataclass(slots=True)
class Accepted:
    """A finding that was made, and that someone accepts.

    Args:
        code: of the finding.
        under: the code, or the beginning of one, under which it is accepted.
        reason: that is given; may be empty.
        location: of the comment that accepts it; None where the op or its spec does.
    """

    code: str
    under: str
    reason: str
    location: Location | None = None


@dataclass(slots=True)
class Check:
    """One rule run on one sample.

    ``resolution`` is the smallest relative gradient error that this check would have seen,
    or None where the rule has no such notion (structural rules). ``dtype`` and ``device`` are
    those it ran at; None where they are the sample's own. ``pairs`` of ``pairs_usual`` pairs of
    cotangent and direction were judged; None where the rule judges none. ``inputs`` says how
    sharply each was judged; ``help`` what to do about an inconclusive check; ``accepted`` what it
    found and someone accepts; ``name`` that of the rule.
    """

    code: str
    verdict: CheckVerdict
    sample: str | None = None
    resolution: float | None = None
    forward_calls: int = 0
    backward_calls: int = 0
    duration_s: float = 0.0
    note: str = ""
    dtype: str | None = None
    device: str | None = None
    pairs: int | None = None
    pairs_usual: int | None = None
    inputs: list[InputPower] = field(default_factory=list)
    help: str = ""
    accepted: list[Accepted] = field(default_factory=list)
    name: str = field(default="", compare=False)

    @property
    def could_not_run(self) -> bool:
        """Whether it was skipped although it applies."""
        return self.verdict == "skipped" and any(words in self.note for words in COULD_NOT_RUN)


@dataclass(slots=True)
class TorchVerdict:
    """What torch's own ``gradcheck`` or ``gradgradcheck`` says.

    ``mode`` is "slow" or "fast"; ``verdict`` is "pass", "fail" or "skipped"; ``message`` is the
    first line of torch's own text; ``agreement`` says what is known where the two disagree;
    ``sample`` is the label of the sample on which it was asked.
    """

    mode: Literal["slow", "fast"]
    verdict: Literal["pass", "fail", "skipped"]
    message: str = ""
    agreement: str = ""
    sample: str = ""


@dataclass(slots=True)
class Prediction:
    """What the rules of a family cost on one sample, predicted before they run.

    Args:
        sample: its label.
        family: "GL4" and "GL5" (their measurements), or "others" for all further rules.
        forward_calls, backward_calls: the most that the rules make if they pass.
        usual_forward_calls, usual_backward_calls: how many they make if the function is smooth
            and its gradient right.
        duration_s: of the usual calls, estimated from the time of one.
        memory_bytes: roughly the peak memory, the sample itself not counted.
    """

    sample: str
    family: str
    forward_calls: int
    backward_calls: int
    usual_forward_calls: int
    usual_backward_calls: int
    duration_s: float
    memory_bytes: int


@dataclass(slots=True)
class TensorFacts:
    """What the anatomy shows of one tensor (``-v``). ``role``: argument, output,
    grad_output, gradient (as returned by backward, before the engine) or saved."""

    role: str
    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    stride: list[int] | None = None
    nan: int = 0
    inf: int = 0
    min: float | None = None
    max: float | None = None
    norm: float | None = None
    nbytes: int = 0
    text: str = ""


#: What came of running an op that passes by itself: it agreed, it did not, or it can't be told.
ConfirmationVerdict = Literal["confirmed", "refuted", "not confirmed"]


@dataclass(slots=True)
class Confirmation:
    """What the op does in a process in which nothing of gradlint is loaded.

    Args:
        note: why it is not confirmed, or what else a reader should know.
        resolution: smallest relative gradient error that would have been seen.
    """

    verdict: ConfirmationVerdict
    note: str = ""
    resolution: float | None = None
    forward_calls: int = 0
    backward_calls: int = 0
    duration_s: float = 0.0


@dataclass(slots=True)
class BaselineUse:
    """What came of the baseline of a run.

    Args:
        path: of the file.
        accepted: how many findings are in it.
        gone: entries that no longer appear although their check ran, as in the file.
    """

    path: str
    accepted: int = 0
    gone: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class CacheUse:
    """What came of the cache of verdicts of a run.

    Args:
        path: the folder or URL, without what it holds of passwords.
        read: how many operators' verdicts were read from it.
        kept: how many were added to it.
        not_kept: operator → why its verdict was not kept, in words that complete "it …".
        notes: what was amiss with it, as sentences; none of it changes a verdict.
    """

    path: str
    read: int = 0
    kept: int = 0
    not_kept: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Unchecked:
    """An operator under ``--require-coverage`` that nothing checks.

    Args:
        name: as a target would name it; kind: as in ``gradlint.model.op.KINDS``.
    """

    name: str
    kind: str
    location: Location


@dataclass(slots=True)
class TargetReport:
    """All that is known about one target.

    ``not_tried`` says what no sample reached: values of arguments, lines, outcomes of conditions.
    ``coverage`` counts what ran of the user's code of "forward" and "backward", as far as it can
    be watched; ``coverage_note`` says why that is not all. ``confirmation`` is there where the
    target passes. ``position`` is its place among all operators of the run, those of other shards
    counted: that of what was named, then that within a module which had to be imported.
    ``accepts`` holds the codes of findings that the op or its spec accepts, and why.
    ``reached`` are the first lines that ran of each function of the user's that backward ran.
    ``cached`` says that all this was found out by an earlier run, and read from the cache.
    """

    target: str
    kind: str = "unknown"
    verdict: Verdict = "skipped"
    samples: list[SampleReport] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    gradcheck: TorchVerdict | None = None
    gradgradcheck: TorchVerdict | None = None
    anatomy: list[TensorFacts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    location: Location | None = None
    duration_s: float = 0.0
    predicted: list[Prediction] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    not_tried: list[str] = field(default_factory=list)
    coverage: dict[str, PhaseCoverage] = field(default_factory=dict)
    coverage_note: str = ""
    confirmation: Confirmation | None = None
    position: list[int] = field(default_factory=list)
    accepts: dict[str, str] = field(default_factory=dict)
    reached: list[Location] = field(default_factory=list)
    cached: bool = False

    @property
    def uncovered(self) -> bool:
        """Whether it passes, and code of its backward never ran: it is not proven right."""
        backward = self.coverage.get("backward")
        return self.verdict == "pass" and backward is not None and not backward.full

    @property
    def judged(self) -> bool:
        """Whether anything was found out: a target whose checks could all not run may be
        inconclusive, but nothing was checked."""
        if self.verdict == "inconclusive" and self.checks:
            return any(check.verdict != "skipped" for check in self.checks)
        return self.verdict in ("pass", "fail", "inconclusive")


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run could not do all that was asked of it.

    Args:
        kind: "usage" for a mistake of the user's (exit code 2), "internal" for one of gradlint's
            own (exit code 3).
        text: what is said of it.
    """

    kind: Literal["usage", "internal"]
    text: str


#: The verdicts of a target, in the order in which they are counted.
VERDICTS = ("pass", "fail", "inconclusive", "error", "skipped")


@dataclass(frozen=True, slots=True)
class Brief:
    """What a program asks of a report first.

    Args:
        ok: whether something was checked and nothing failed.
        code, cause: of the worst finding; None where there is none, or its cause is not known.
        resolution: the smallest relative error of a gradient that every check that passed would
            have seen; None where no gradient was measured.
    """

    ok: bool
    code: str | None = None
    cause: str | None = None
    resolution: float | None = None


@dataclass(repr=False)
class Report(Shown):
    """The result of one run.

    Args:
        targets: a list; on the command line, what reads each target from a file when it is asked
            for. Who changes one of them puts it back: ``report.targets[number] = target``.
        fail_on: lowest severity that makes a finding count as a failure: "error", "warning",
            "info", "inconclusive" (which also fails targets whose verdict is inconclusive) or
            "uncovered" (which also fails those that pass with code of backward that never ran).
        interrupted: whether Ctrl-C ended the run early.
        settings: those of the run, by name: what tells whether two reports are of one run.
        errors: what kept the run from doing all that was asked of it.
        stopped: whether it ended early because as many targets had failed as ``--max-failures``
            allows.
        skipped: what was asked for and is not here, or holds no operator: what, and why.
        left_out: operators that were not asked for: why, and which.
        shard: which part of the operators this run is about, as in "1/4"; "" for all.
        baseline: what came of the baseline; None without one.
        unchecked: operators that had to be checked and were not: they fail the run.
        cache: what came of the cache of verdicts; None without one.
    """

    targets: MutableSequence[TargetReport] = field(default_factory=list)
    seed: int = 0
    environment: dict[str, Any] = field(default_factory=dict)
    gradlint: str = ""
    duration_s: float = 0.0
    fail_on: FailOn = "warning"
    interrupted: bool = False
    skipped: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    errors: list[RunError] = field(default_factory=list)
    stopped: bool = False
    left_out: dict[str, list[str]] = field(default_factory=dict)
    shard: str = ""
    baseline: BaselineUse | None = None
    unchecked: list[Unchecked] = field(default_factory=list)
    cache: CacheUse | None = None

    @property
    def findings(self) -> list[Finding]:
        """Every finding of every target, in the order of the targets."""
        return [*self.each_finding()]

    def each_finding(self) -> Iterator[Finding]:
        """The same, one at a time."""
        for target in self.targets:
            yield from target.findings

    @property
    def brief(self) -> Brief:
        """The outcome in four values."""
        worst = min(self.each_finding(), key=_rank, default=None)
        powers = [
            check.resolution
            for target in self.targets
            for check in target.checks
            if check.verdict == "pass" and check.resolution is not None
        ]
        return Brief(
            self.ok,
            worst.code if worst is not None else None,
            worst.cause if worst is not None else None,
            max(powers, default=None),
        )

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed, at the ``fail_on`` level."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings that fail, 2 usage, 3 internal error, 5 nothing checked,
        130 interrupted."""
        if self.interrupted:
            return 130
        kinds = {error.kind for error in self.errors}
        if kinds:
            return 3 if "internal" in kinds else 2
        if self.unchecked or any(self.fails(target) for target in self.targets):
            return 1
        if self.targets or not self.left_out:
            return 0 if any(target.judged for target in self.targets) else 5
        return 0  # there are operators, and nobody asked for one of them

    def fails(self, target: TargetReport) -> bool:
        """Whether ``target`` fails the run."""
        if any(failing(finding, self.fail_on) for finding in target.findings):
            return True
        if target.verdict == "error":
            return not any(finding.baselined for finding in target.findings)
        unsure = target.verdict == "inconclusive" and self.fail_on in FAIL_INCONCLUSIVE
        return unsure or (target.uncovered and self.fail_on == "uncovered")

    def __repr__(self) -> str:
        """One line: the outcome, the targets by verdict, the codes of the findings, the seed."""
        counts = self.summary()
        verdicts = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
        parts = [
            "ok" if self.ok else "not ok",
            f"{len(self.targets)} target{'' if len(self.targets) == 1 else 's'}"
            + (f" ({', '.join(verdicts)})" if verdicts else ""),
        ]
        codes = Counter(finding.code for finding in self.each_finding())
        if codes:
            parts.append("findings " + ", ".join(_times(*item) for item in sorted(codes.items())))
        return f"<Report: {'; '.join([*parts, f'seed {self.seed}'])}>"

    def raise_if_failed(self) -> None:
        """Do nothing if the report is :attr:`ok`; for tests.

        Raises:
            CheckFailedError: it is not, which includes that nothing was checked. An assertion
                error, whose message is the full report.
        """
        if not self.ok:
            raise CheckFailedError(str(self))

    def summary(self) -> dict[str, Any]:
        """Counts of targets by verdict, of those that pass with code of backward that never ran
        ("uncovered"), of findings, and the duration in seconds."""
        counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
        uncovered = findings = 0
        for target in self.targets:
            counts[target.verdict] += 1
            uncovered += target.uncovered
            findings += len(target.findings)
        return {
            "targets": len(self.targets),
            **counts,
            "uncovered": uncovered,
            "findings": findings,
            "duration_s": self.duration_s,
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract: one object, finite numbers only (NaN and Inf become strings)."""
        made = self.entries()
        return {**made, "targets": [jsonable(target) for target in made["targets"]]}

    def entries(self) -> dict[str, Any]:
        """:meth:`to_dict` with an iterator over the targets, whose values are those of the model:
        what a report of many findings is written from piece by piece."""
        return {
            "schema_version": SCHEMA_VERSION,
            "gradlint": self.gradlint,
            "seed": self.seed,
            "environment": jsonable(self.environment),
            "summary": jsonable(self.summary()),
            "settings": jsonable(self.settings),
            "fail_on": self.fail_on,
            "errors": jsonable(self.errors),
            "skipped": jsonable(self.skipped),
            "interrupted": self.interrupted,
            "stopped": self.stopped,
            "left_out": jsonable(self.left_out),
            "shard": self.shard,
            "baseline": jsonable(self.baseline),
            "unchecked": jsonable(self.unchecked),
            "cache": jsonable(self.cache),
            "targets": map(_entry, self.targets),
        }


def _entry(target: TargetReport) -> dict[str, Any]:
    """``target`` as the JSON contract names its fields; the values are those of the model."""
    entry = {f.name: getattr(target, f.name) for f in dataclasses.fields(target)}
    for key, verdict in (
        ("gradcheck", target.gradcheck),
        ("gradgradcheck", target.gradgradcheck),
    ):
        entry[key] = (
            {}
            if verdict is None
            else {
                verdict.mode: verdict.verdict,
                "message": verdict.message,
                "agreement": verdict.agreement,
                "sample": verdict.sample,
            }
        )
    return entry


def _rank(finding: Finding) -> tuple[bool, int, bool]:
    """What a program should look at first has the least: what fails and follows from nothing."""
    return finding.baselined, SEVERITIES.index(finding.severity), finding.follows is not None


def _times(code: str, count: int) -> str:
    return code if count == 1 else f"{code} ×{count}"


def failing(finding: Finding, fail_on: FailOn) -> bool:
    """Whether ``finding`` is at or above the failing severity ``fail_on``, and not in the baseline
    of the run."""
    if finding.baselined:
        return False
    floor = fail_on if fail_on in SEVERITIES else "warning"
    return SEVERITIES.index(finding.severity) <= SEVERITIES.index(floor)


def jsonable(value: Any) -> Any:
    """``value`` as dicts, lists, strings, numbers, booleans and None, with finite numbers only."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value if isinstance(value, float) else str(value)
