"""From the events of one target to its report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from gradlint.checking.finding_causality import grouped
from gradlint.model.coverage import FunctionCoverage, by_phase, merged, not_reached
from gradlint.model.events import (
    ANATOMY,
    FURTHER,
    REGUESSED,
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
    TorchCheck,
    TorchVerdictMade,
)
from gradlint.model.report import (
    ACCEPTED_IN,
    IGNORED_BY_OP,
    IGNORED_IN_SETTINGS,
    MEMORY_RAN_OUT,
    NOT_TRIED,
    SIZES_LEFT_OUT,
    Accepted,
    Check,
    Finding,
    Location,
    SampleReport,
    TargetReport,
    Tried,
    Verdict,
)
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import (
    CATALOGUE,
    longest_match,
    rule_names,
    select_rules,
    with_names,
)
from gradlint.running.events import Done, Loaded

#: Findings after which a target could not be judged.
UNJUDGED = ("GL001", "GL002", "GL005", "GL006", "GL007")

#: In the notes of checks that are left out because someone accepts what they find.
ACCEPTED = (IGNORED_BY_OP, IGNORED_IN_SETTINGS, ACCEPTED_IN)

#: Work that is begun and concluded as rules are, without being one.
_BESIDE_RULES = frozenset((ANATOMY, FURTHER, *get_args(TorchCheck)))

#: Texts of a check that those of other operators have too.
_REPEATED = ("code", "verdict", "sample", "note", "help", "dtype", "device")

#: Rules that run the op on sizes and values of their own.
_CHOOSING = frozenset(rule.code for rule in CATALOGUE if rule.chooses)


class Contradiction(Exception):
    """An event that contradicts what is known: it did not come from gradlint's own code."""


class Collector:
    """Builds a :class:`TargetReport` from events, over as many workers as it takes.

    Every event is held against those before it. What the rules do has an order (the samples first;
    a check is begun, then concluded, once; nothing follows the end), and an operator that sends
    events of its own can't keep to it, since gradlint sends them too.

    Args:
        report: filled in place.
        settings: of the run.
        complete: whether every selected rule must have run at the end (not where a test puts
            something else in their place).

    Attributes:
        elsewhere: codes of rules that another worker runs meanwhile.
    """

    def __init__(self, report: TargetReport, settings: Settings, *, complete: bool = True) -> None:
        self.report = report
        self.done: set[tuple[str, str]] = set()
        self.current: tuple[str, str] | None = None
        rules = [rule for rule in select_rules(settings) if rule.has_probe]
        self._codes = {rule.code for rule in rules}
        # Whether rules of higher order apply is known to the worker alone.
        self._required = {rule.code for rule in rules if rule.order == 1} if complete else set()
        self._selected = settings.select is not None
        self._trusted = not settings.untrusted
        self._labels: Counter[str] = Counter()
        self._every: frozenset[str] = frozenset()  # of these, every rule runs
        self._begun: Counter[tuple[str, str]] = Counter()
        self._skipped: set[str] = set()
        self.elsewhere: frozenset[str] = frozenset()
        # The places of checks that another worker makes: a check that stands there meanwhile, and
        # how many findings were made before.
        self._elsewhere: list[tuple[Check, int]] = []
        self._reguessed = False
        self._untried: list[str] | None = None
        self._covered: list[FunctionCoverage] = []
        self.confirmable: Confirmable | None = None
        self.next_worker()

    def forget(self) -> None:
        """Keep nothing but the report, once it is finished: a run may be over thousands."""
        self.done.clear()
        self._labels.clear()
        self._begun.clear()
        self._covered.clear()
        self._told.clear()
        self.confirmable = None

    def next_worker(self) -> None:
        """A fresh worker goes on; it has said nothing yet."""
        self._open = False
        self._since = len(self.report.checks)
        self._told: set[type[Event]] = set()
        self._excused = False
        self._ended = False

    @property
    def excused(self) -> bool:
        """Whether this worker had a reason to check nothing."""
        return self._excused

    @property
    def verdict(self) -> Verdict:
        """What is to be said of all that has come up to now."""
        return verdict(self.report, selected=self._selected)

    def distrust(self) -> None:
        """Drop every result of this worker: any of them may be forged."""
        del self.report.checks[self._since :]

    def excuse(self) -> None:
        """The job ends without a result, for a reason that was given."""
        self._require(not self._ended, "something after the end of the job")
        self._excused = True

    def take(self, event: Event) -> None:
        """Add one event of a worker or of ``examine``.

        Raises:
            Contradiction: it can't be true.
        """
        self._require(not self._ended, "something after the end of the job")
        match event:
            case Loaded():
                self._know(event)
            case Accepts():
                self._accept(event)
            case Samples(samples):
                self._once(event)
                self._begin_with(samples)
            case Begin(code, sample):
                self._begin(code, sample)
            case Elsewhere(code, sample):
                self._require(code in self.elsewhere, f"{code} left to a worker that is not there")
                self._begin(code, sample)
                self._conclude(code)
                self.current = None
                place = Check(code, "skipped", sample)
                self._elsewhere.append((place, len(self.report.findings)))
                self.report.checks.append(place)
            case CheckDone(check):
                self._conclude(check.code, check.sample)
                self.report.checks.append(check)
            case Found(finding):
                rule = self.current is not None and self.current[0] not in _BESIDE_RULES
                self._require(rule, f"a finding of {finding.code}, while no rule was running")
                # Whether it is accepted, and what mends it, is not the worker's to say.
                finding.baselined, finding.fix = False, None
                self.report.findings.append(finding)
            case Anatomy(tensors):
                self._conclude(ANATOMY)
                self.report.anatomy = list(tensors)
            case Further(tried, sample):
                self._conclude(FURTHER, tried.label)
                self._looked_at(tried, sample)
            case Reguessed(sample, note):
                self._reguess(sample, note)
            case Predicted(predictions):
                self._require(self._open, "a prediction, while no rule was running")
                again = {item.sample for item in predictions}
                kept = [item for item in self.report.predicted if item.sample not in again]
                self.report.predicted = kept + list(predictions)
            case TorchVerdictMade(which, verdict):
                self._conclude(which)
                setattr(self.report, which, verdict)
            case Skip(code, reason):
                self._require(
                    code in self._codes, f"a reason to skip {code}, which is not selected"
                )
                self._skipped.add(code)
                skipped = Check(code, "skipped", note=reason)
                if skipped not in self.report.checks:
                    self.report.checks.append(skipped)
            case Note(text):
                self.add_note(text)
            case Confirmable():
                self._keep_call(event)
            case Covered():
                self._cover(event)
            case Done():
                self._end()
            case _:
                raise Contradiction(
                    f"gradlint received a {type(event).__name__}, which no check sends"
                )

    def fill_in(self, results: Mapping[tuple[str, str], tuple[Check, list[Finding]]]) -> bool:
        """Put what another worker found into its places; False if anything is missing."""
        there = all((place.code, place.sample or "") in results for place, _ in self._elsewhere)
        if self._reguessed or not there:
            return False
        for place, number in reversed(self._elsewhere):
            check, findings = results[place.code, place.sample or ""]
            at = next(i for i, known in enumerate(self.report.checks) if known is place)
            self.report.checks[at] = check
            self.report.findings[number:number] = findings
        self._elsewhere.clear()
        return True

    def do_without(self) -> None:
        """Nothing comes from another worker: the next one runs its rules, too."""
        places = [place for place, _ in self._elsewhere]
        self.report.checks = [
            check for check in self.report.checks if not any(check is place for place in places)
        ]
        for place in places:
            self._begun[place.code, place.sample or ""] = 0
        self._elsewhere.clear()
        self.elsewhere = frozenset()

    def give_up_current(self) -> None:
        """Never run again what was running when the worker ended."""
        if self.current is not None:
            self.done.add(self.current)
            self.current = None

    def add_note(self, text: str) -> None:
        """Add a note, unless it was added before."""
        if text not in self.report.notes:
            self.report.notes.append(text)

    def op_raised(self, phase: str, line: str) -> None:
        """The op raised in a later call, where what was running could not go on."""
        note = f"{phase} raised {line} in a later call"
        code, sample = self.current or ("", "")
        if code == FURTHER:
            self.add_note(f"not tried {sample}: {note}")
        elif not code or code in _BESIDE_RULES:
            self.add_note(note)
        else:
            self.report.checks.append(Check(code, "inconclusive", sample, note=note))

    def accepts_end(self, what: str) -> bool:
        """Whether the op accepts what the rule finds that was running when its worker ended; then
        the end counts as such a finding. ``what`` says how it ended."""
        if self.current is None:
            return False
        code, sample = self.current
        under = longest_match(self.report.accepts, code)
        if under is None:
            return False
        reason = self.report.accepts[under]
        note = "; ".join(
            filter(None, (f"{IGNORED_BY_OP}: {reason}" if reason else IGNORED_BY_OP, what))
        )
        accepted = [Accepted(code, under, reason)]
        self.report.checks.append(Check(code, "skipped", sample, note=note, accepted=accepted))
        return True

    def chose_inputs(self) -> bool:
        """Whether what is running chooses its own sizes and values, after the op has returned on
        the sample: if it is slow there, that is no fault."""
        if self.current is None or self.current[0] not in _CHOOSING:
            return False
        sample = self.current[1]
        return any(check.sample == sample for check in self._judged())

    def _judged(self) -> Iterator[Check]:
        """The checks that came to a verdict, for which the op has returned."""
        return (check for check in self.report.checks if check.verdict in ("pass", "fail"))

    def memory_ran_out(self) -> bool:
        """Note that memory ran out for what a check keeps beside the op, which is no fault of one
        that has returned before; whether it has."""
        if self.current is None:
            return False
        code, sample = self.current
        if code == FURTHER:
            self.add_note(f"not tried {sample}: memory ran out")
            return True
        if code in _BESIDE_RULES or not any(self._judged()):
            return False
        self.report.checks.append(Check(code, "inconclusive", sample, note=MEMORY_RAN_OUT))
        return True

    def too_slow(self, phase: str, timeout: float) -> None:
        """What was running took too long on inputs that it chose."""
        if self.current is None:
            return
        code, sample = self.current
        note = f"not tried: {phase} took more than {timeout:g} s on inputs that this check chose"
        self.report.checks.append(Check(code, "skipped", sample, note=note))

    def took_long(self, phase: str, timeout: float) -> bool:
        """Note that what was running could not end in time on guessed inputs, although
        calls return, as they did before; whether that is so. An iteration may converge sooner at
        the inputs that the op is meant for."""
        if self.current is None:
            return False
        code, sample = self.current
        guessed = any(
            one.label == sample and one.origin == "inferred" for one in self.report.samples
        )
        if not guessed or not any(self._judged()):
            return False
        if code in _BESIDE_RULES:
            self.add_note(f"{code} did not end: {phase} is slow")
            return True
        note = f"{phase} is slow: this check took more than {timeout:g} s; give other inputs "
        note += "(--inputs), or more time (--timeout)"
        self.report.checks.append(Check(code, "inconclusive", sample, note=note))
        return True

    def finish(self) -> TargetReport:
        """The report, with its verdict, and every finding's consequences under it."""
        self.report.findings = grouped(self.report.findings)
        names = rule_names()
        for check in self.report.checks:
            check.name = names.get(check.code, "")
            if not any(words in check.note for words in ACCEPTED):  # these are the user's words
                check.note = with_names(check.note)
            check.help = with_names(check.help)
            _share_texts(check)
        for finding in self.report.findings:
            finding.message = with_names(finding.message)
            finding.cause_text = with_names(finding.cause_text)
            finding.help = with_names(finding.help)
        for asked in (self.report.gradcheck, self.report.gradgradcheck):
            if asked is not None:
                asked.agreement = with_names(asked.agreement)
        self.report.notes = [with_names(note) for note in self.report.notes]
        self.report.verdict = self.verdict
        judged = any(check.verdict not in ("skipped", "error") for check in self.report.checks)
        if judged and self.report.verdict in ("pass", "fail", "inconclusive"):
            own = self.report.location.file if self.report.location else ""
            self.report.coverage = by_phase(self._covered, own)
            self.report.not_tried = [
                *(self._untried or ()),
                *_left_out(self.report.checks),
                *not_reached(self._covered, own),
            ]
            self.report.reached = [
                Location(item.file, min(item.ran))
                for item in self._covered
                if item.phase == "backward" and item.ran
            ]
        return self.report

    def _accept(self, event: Accepts) -> None:
        self._once(event)
        self._require(self._trusted, "findings to accept, of code that is not trusted")
        self.report.accepts = dict(event.ignores)

    def _know(self, event: Loaded) -> None:
        self._once(event)
        self.report.kind = event.kind
        self.report.location = event.location or self.report.location

    def _keep_call(self, event: Confirmable) -> None:
        self._once(event)
        self.confirmable = event

    def _cover(self, event: Covered) -> None:
        what = "what was reached, before any sample or while a rule was running"
        self._require(Samples in self._told and not self._open, what)
        self._covered = merged(self._covered, event.functions)
        known = event.values if self._untried is None else self._untried
        self._untried = [text for text in known if text in event.values]
        self.report.coverage_note = event.note

    # -- what can be true -----------------------------------------------------------------------

    def _require(self, true: bool, what: str) -> None:
        if not true:
            raise Contradiction(f"gradlint received {what}")

    def _once(self, event: Event) -> None:
        name = type(event).__name__
        self._require(type(event) not in self._told, f"the event {name} a second time")
        self._told.add(type(event))

    def _begin_with(self, samples: Sequence[SampleReport]) -> None:
        """These are the samples on which every rule runs; further ones of earlier workers stay."""
        self._labels = Counter(sample.label for sample in samples)
        self._every = frozenset(self._labels)
        further = {tried.label for tried in self.report.tried} - self._every
        kept = [item for item in self.report.samples if item.label in further]
        self.report.samples = [*samples, *kept]

    def _looked_at(self, tried: Tried, sample: SampleReport | None) -> None:
        """A further sample was looked at, and is examined if ``sample`` is given."""
        self.report.tried.append(tried)
        if sample is not None:
            self._labels[tried.label] += 1
            self.report.samples.append(sample)

    def _reguess(self, sample: SampleReport, note: str) -> None:
        """Another guess takes the place of the sample of the same label."""
        label, report = sample.label, self.report
        what = f"another guess in place of sample {label}"
        self._require(label in self._every and not self._open, what)
        self._require((REGUESSED, label) not in self.done, f"{what} a second time")
        report.findings = [item for item in report.findings if item.sample != label]
        self._reguessed = True  # what another worker finds, it finds at the first guess
        self._elsewhere = [item for item in self._elsewhere if item[0].sample != label]
        before = len(report.checks)
        report.checks = [item for item in report.checks if item.sample != label]
        self._since = max(self._since - before + len(report.checks), 0)
        report.samples = [sample if item.label == label else item for item in report.samples]
        self.give_up_current()
        self.done = {pair for pair in self.done if pair[1] != label} | {(REGUESSED, label)}
        for pair in [pair for pair in self._begun if pair[1] == label]:
            del self._begun[pair]
        for which in get_args(TorchCheck):
            made = getattr(report, which)
            if made is not None and made.sample == label:
                setattr(report, which, None)
        self.add_note(note)

    def _begin(self, code: str, sample: str) -> None:
        what = f"the start of {code} on sample {sample}"
        known = sample in self._labels or (code == FURTHER and bool(self._labels))
        self._require(known, f"{what}, which is not one of the samples")
        self._require(
            code in self._codes or code in _BESIDE_RULES, f"{what}, which is not selected"
        )
        self._require(not self._open, f"{what}, before {_name(self.current)} came to its end")
        pair = (code, sample)
        most = 1 if code == FURTHER else self._labels[sample]
        self._require(self._begun[pair] < most, f"{what} a second time")
        self._begun[pair] += 1
        self.give_up_current()
        self.current, self._open = pair, True

    def _conclude(self, code: str, sample: str | None = None) -> None:
        """What was begun under ``code`` has its result."""
        expected = self.current if self._open else None
        if expected is not None and expected[0] == code and sample in (None, expected[1]):
            self._open = False
            return
        raise Contradiction(f"gradlint received a result of {code}, which was not running")

    def _end(self) -> None:
        if not self._excused:
            self._require(Samples in self._told, "the end of the job, before any sample")
            self._require(not self._open, f"the end of the job, during {_name(self.current)}")
            missing = sorted(
                code
                for code in self._required - self._skipped
                if any((code, label) not in self._begun for label in self._every)
            )
            self._require(not missing, f"the end of the job, before {', '.join(missing)} had run")
            told = Confirmable in self._told or not self._required
            self._require(told, "the end of the job, before the call that is to be confirmed")
        self._ended = True
        self.give_up_current()


def _share_texts(check: Check) -> None:
    """Hold what many checks say once, however many operators there are."""
    for name in _REPEATED:
        text = getattr(check, name)
        if type(text) is str:
            setattr(check, name, sys.intern(text))


def _left_out(checks: Sequence[Check]) -> list[str]:
    """What checks that passed had no time for, as their notes say: ``too slow at 31 × 33``.

    What was skipped as a whole is listed among what could not run.
    """
    parts = [part for check in checks if check.verdict == "pass" for part in check.note.split("; ")]
    sizes = [part.removeprefix(SIZES_LEFT_OUT) for part in parts if part.startswith(SIZES_LEFT_OUT)]
    slow = [part.removeprefix(NOT_TRIED) for part in parts if part.startswith(NOT_TRIED)]
    return list(dict.fromkeys([*(f"further sizes ({reason})" for reason in sizes), *slow]))


def _name(pair: tuple[str, str] | None) -> str:
    return f"{pair[0]} on sample {pair[1]}" if pair is not None else "nothing"


def verdict(report: TargetReport, *, selected: bool = False) -> Verdict:
    """The verdict of a target: the worst of what its findings and checks say.

    Args:
        selected: whether the user chose the rules: if none of them could run, what was asked is not
            answered, which is more than that nothing was checked.
    """
    if any(finding.code in UNJUDGED for finding in report.findings):
        return "error"
    if any(finding.severity in ("error", "warning") for finding in report.findings):
        return "fail"
    verdicts = {check.verdict for check in report.checks}
    candidates: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")
    for candidate in candidates:
        if candidate in verdicts:
            return candidate
    could_not_run = [
        check for check in report.checks if not any(words in check.note for words in ACCEPTED)
    ]
    return "inconclusive" if selected and could_not_run else "skipped"
