"""All rules over all samples of one op: what a worker runs."""

from __future__ import annotations

import ast
import fnmatch
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from gradlint.checking.confirmable import confirmable
from gradlint.checking.further import FurtherSamples
from gradlint.checking.guesses import first_words, guess_otherwise, is_questioned
from gradlint.checking.not_tried import not_tried
from gradlint.checking.plan import beyond_budget, make_plan
from gradlint.checking.severity import as_loud_as_evidence
from gradlint.checking.torch_verdict import TorchAsked
from gradlint.experiments.judged_dtype import accepted, as_computed
from gradlint.experiments.order.second_order import differentiate_twice
from gradlint.experiments.outcomes import any_defect, inconclusive
from gradlint.experiments.raised_errors import is_memory_used_up
from gradlint.experiments.subject import Subject
from gradlint.experiments.unsupported_dtype import unsupported_dtype
from gradlint.model.events import (
    ANATOMY,
    FURTHER,
    REGUESSED,
    Accepts,
    Anatomy,
    Begin,
    CheckDone,
    Covered,
    Elsewhere,
    Emit,
    Event,
    Found,
    Further,
    Note,
    Predicted,
    Reguessed,
    Samples,
    Skip,
)
from gradlint.model.op import Op
from gradlint.model.report import (
    ACCEPTED_IN,
    IGNORED_BY_OP,
    IGNORED_IN_SETTINGS,
    MEMORY_RAN_OUT,
    Accepted,
    Check,
    Finding,
    InputPower,
    Location,
    SampleReport,
    Tried,
)
from gradlint.model.rule import Outcome, Rule
from gradlint.model.sample import Sample, described
from gradlint.model.settings import Settings
from gradlint.numerics.decide import Decision
from gradlint.ops.patience import NotTried, Patience
from gradlint.ops.phase import phase
from gradlint.rules.catalogue import CATALOGUE, longest_match, select_rules
from gradlint.targets.source_file import read_source
from gradlint.targets.suppressions import suppressions_in
from gradlint.trace.anatomy import anatomy
from gradlint.trace.coverage import Coverage
from gradlint.trace.global_state import preserved_state
from gradlint.trace.module_state import module_state
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem, draws_random_numbers

#: Share of ``--timeout`` that a call on inputs of a check's own choosing may take; how many times
#: as long as the sample's, if that is more; and the largest share (heuristic: such calls are
#: meant to take half a second at most, and a minute is the usual time-out).
CHOSEN_SHARE, SLOWER, MOST_CHOSEN_SHARE = 0.02, 20.0, 0.1
#: Families of rules that look at first derivatives: further samples are for them.
_FIRST_ORDER = ("GL004", "GL1", "GL2", "GL302", "GL4")

#: Rules that judge gradients where a sample does not: other flags, sizes and layouts, special
#: values, outputs that are not used. What only they reach of the user's code counts as tried.
REACHING = ("GL110", "GL402", "GL405", "GL7")

#: Attributes of a module that a note names, at most.
STATE_SHOWN = 3

#: Sees what every rule came to, with the op on the sample that it looked at.
Witness = Callable[[Subject, Outcome], None]


def input_powers(subject: Subject, code: str) -> list[InputPower]:
    """The resolving power of check ``code`` for every input; nothing for checks without one.

    Reads what was measured, and measures nothing.
    """
    if code == "GL401" and subject.first_order_is_known:
        names = [item.name for item in subject.problem.inputs]
        return _powers_of(subject.first_order, names)
    if code == "GL501" and subject.made("differentiate_twice"):
        attempt = subject.once(differentiate_twice)
        if attempt.map is not None and attempt.decision is not None:
            return _powers_of(attempt.decision, attempt.map.names)
    return []


def _powers_of(decision: Decision, names: list[str]) -> list[InputPower]:
    return [
        InputPower(
            names[item.index],
            decision.verdicts[place],
            decision.resolution_of(item.index),
            item.element_resolution,
            item.kappa,
        )
        for place, item in enumerate(decision.judgement.inputs)
        if decision.function.values[item.index].numel()
    ]


def next_step(subject: Subject, code: str, note: str) -> str:
    """What to do about an inconclusive check with this ``note``."""
    plan = subject.plan
    target = shlex.quote(subject.op.target)
    if "--max-calls" in plan.reason or "--max-calls" in note:
        return "raise --max-calls, or leave it out"
    if "called again with the same inputs" in note:
        return "GL606 shows what changes, and says what to look for"
    if "--timeout" in note:
        return "raise --timeout, or give the op smaller inputs (--inputs)"
    if code.startswith(("GL4", "GL5")) and subject.problem.inputs:
        return (
            f"`gradlint sweep {target} --seed {subject.seed}` shows what limits the measurement; "
            "try --dtype float64, or --inputs away from kinks and poles"
        )
    return "try other inputs (--inputs)"


def ignored_rules(
    op: Op, rules: list[Rule], settings: Settings, *, isolated: bool = True
) -> dict[str, str]:
    """Code → why it is left out, of those ``rules`` that need not run on ``op`` at all.

    Rules that only find what the op accepts run all the same, so that it is known whether anything
    is left to accept; but not in a process that is not ``isolated``, which a crash would end.
    """
    found = {}
    for rule in rules:
        under = None if isolated else longest_match(op.ignores, rule.code)
        if under is not None:
            found[rule.code] = _by_op(op.ignores[under])
            continue
        pattern = _ignoring_pattern(op, rule.code, settings)
        if pattern is not None:
            found[rule.code] = f"{IGNORED_IN_SETTINGS} for {pattern}"
    return found


def without_suppressed(outcome: Outcome, ignores: Mapping[str, str] | None = None) -> Outcome:
    """``outcome`` without the findings that are accepted: by a comment on their line, or on the
    ``def`` or ``class`` around it (``# gradlint: ignore[GL602] reason``), or by the op.

    Args:
        ignores: rule code → reason, declared with the op.
    """
    kept, notes = [], []
    for finding in outcome.findings:
        accepted = _accepted_by_comment(finding) or _accepted_by_op(finding, ignores or {})
        if accepted is None:
            kept.append(finding)
            continue
        outcome.accepted.append(accepted)
        notes.append(_by_op(accepted.reason))
        if accepted.location is not None:
            reason = f": {accepted.reason}" if accepted.reason else ""
            notes[-1] = f"{ACCEPTED_IN} {finding.location}{reason}"
    if not notes:
        return outcome
    outcome.findings = kept
    notes = list(dict.fromkeys(notes))
    outcome.note = "; ".join(part for part in (outcome.note, *notes) if part)
    if outcome.verdict == "fail" and all(finding.severity == "info" for finding in kept):
        outcome.verdict = "skipped"
    return outcome


def _by_op(reason: str) -> str:
    return f"{IGNORED_BY_OP}: {reason}" if reason else IGNORED_BY_OP


def _accepted_by_op(finding: Finding, ignores: Mapping[str, str]) -> Accepted | None:
    under = longest_match(ignores, finding.code)
    return None if under is None else Accepted(finding.code, under, ignores[under])


def _ignoring_pattern(op: Op, code: str, settings: Settings) -> str | None:
    names = {op.target, op.target.partition(":")[0], op.name}
    for pattern, codes in settings.per_target_ignores:
        if any(code.startswith(known) for known in codes) and any(
            fnmatch.fnmatchcase(name, pattern) for name in names
        ):
            return pattern
    return None


def _accepted_by_comment(finding: Finding) -> Accepted | None:
    location = finding.location
    source = read_source(os.path.abspath(location.file)) if location is not None else None
    if location is None or source is None or source.tree is None:
        return None
    for first, last in _scopes(source.tree, location):
        found = suppressions_in(source, first, last)
        under = longest_match(found, finding.code)
        if under is not None:
            place = Location(location.file, found[under].line)
            return Accepted(finding.code, under, found[under].reason, place)
    return None


def _holds(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", None)  # a case of match has none
    return first is None or first <= line <= (getattr(node, "end_lineno", None) or first)


def _scopes(tree: ast.Module, location: Location) -> list[tuple[int, int]]:
    """Line ranges where a comment applies to ``location``: its own lines, and the headers of the
    functions and classes around it."""
    found = [(location.line, location.end_line or location.line)]
    around: list[ast.AST] = [tree]
    while around:
        node = around.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append((node.lineno, max(node.lineno, node.body[0].lineno - 1)))
        around += [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
            and _holds(child, location.line)
        ]
    return found


def examine(
    op: Op,
    samples: Sequence[Sample],
    settings: Settings,
    emit: Emit,
    done: frozenset[tuple[str, str]] = frozenset(),
    *,
    isolated: bool = True,
    elsewhere: frozenset[str] = frozenset(),
    witness: Witness | None = None,
) -> None:
    """Run every selected rule on every sample, dtype and device, emitting events as they come.

    Args:
        op: the loaded operator.
        samples: its samples, in float64 unless the op takes only narrower dtypes.
        settings: what was asked for.
        emit: called with each event of ``gradlint.model.events`` as it comes.
        done: (code, sample label) pairs not to be run again, after a crash.
        isolated: whether this process may crash.
        elsewhere: codes of rules that another process runs, by :func:`examine_only`.
        witness: see :data:`Witness`.
    """
    rules = _selected(op, settings, emit, isolated=isolated)
    with preserved_state():
        variants, notes = expand_samples(op, samples, settings)
    for note in notes:
        emit(Note(note))
    coverage = Coverage(op)
    instead = {
        sample.label: _again(Subject(op, sample, settings, coverage))
        for sample in variants
        if (REGUESSED, sample.label) in done  # before a crash
    }
    variants = [instead[v.label].sample if v.label in instead else v for v in variants]
    emit(Samples([described_sample(op, sample) for sample in variants]))
    once = _EachDefectOnce(emit)
    asked = TorchAsked(once, done)
    first: Subject | None = None
    for place, sample in enumerate(variants):
        subject = instead.get(sample.label) or Subject(op, sample, settings, coverage)
        supported = _examine_sample(
            subject,
            rules,
            once,
            done,
            asked,
            first=first is None,
            elsewhere=elsewhere,
            witness=witness,
        )
        other = _guessed_otherwise(subject, once, done)
        if other is not None:
            subject, variants[place] = other, other.sample
            done = frozenset(pair for pair in done if pair[1] != sample.label)
            asked = TorchAsked(once, done)
            supported = _examine_sample(
                subject,
                rules,
                once,
                done,
                asked,
                first=first is None,
                elsewhere=elsewhere,
                witness=witness,
            )
        if supported:
            first = first or subject
        emit(_covered(op, variants, coverage))
    if first is not None and any(rule.code.startswith(_FIRST_ORDER) for rule in rules):
        others = [sample for sample in variants if _is_optional(first.sample, sample)]
        _look_further(first, others, variants, rules, once, done, once.told, asked, witness)
        emit(_covered(op, variants, coverage))
    emit(confirmable(first))


def examine_only(
    codes: frozenset[str], op: Op, samples: Sequence[Sample], settings: Settings, emit: Emit
) -> None:
    """Run the rules with these ``codes``, which look at the first sample only, as :func:`examine`
    would that runs all of them."""
    rules = _selected(op, settings, lambda event: None)
    with preserved_state():
        variants, _ = expand_samples(op, samples, settings)
    emit(Samples([described_sample(op, sample) for sample in variants]))
    once = _EachDefectOnce(emit)
    for sample in variants:
        subject = Subject(op, sample, settings)
        for rule in rules:
            if rule.code in codes:
                once(Begin(rule.code, sample.label))
                _run(subject, rule, once, rules)
        with preserved_state():
            if not unsupported_dtype(subject):
                break


def _selected(op: Op, settings: Settings, emit: Emit, *, isolated: bool = True) -> list[Rule]:
    """The rules to run on ``op``, in their order. Says which are left out, and what is accepted."""
    if settings.untrusted:
        op.ignores = {}  # what nobody trusts can't say what is to be accepted
    if op.ignores:
        emit(Accepts(dict(op.ignores)))
    rules = [
        rule
        for rule in select_rules(settings, CATALOGUE)
        if rule.has_probe and rule.order <= min(settings.order, op.order or 2)
    ]
    ignored = ignored_rules(op, rules, settings, isolated=isolated)
    for code, reason in ignored.items():
        emit(Skip(code, reason))
    kept = (rule for rule in rules if rule.code not in ignored)
    return sorted(kept, key=lambda rule: (rule.stage, rule.code))


def _guessed_otherwise(
    subject: Subject, once: _EachDefectOnce, done: frozenset[tuple[str, str]]
) -> Subject | None:
    """The op at another guess, if backward is wrong at that of ``subject`` and right there; what
    was found at the first is then forgotten."""
    sample = subject.sample
    label = f"{REGUESSED}, in place of {sample.label}"
    if (FURTHER, label) in done or not is_questioned(sample, once.findings):
        return None
    started = time.perf_counter()
    once(Begin(FURTHER, label))
    with phase("rule"), preserved_state():
        seen = guess_otherwise(subject)
    seconds = time.perf_counter() - started
    tried = Tried(label, seen.verdict, seen.forward_calls, seen.backward_calls, seconds)
    once(Further(tried))
    if seen.subject is not None:
        wrong = first_words(once.findings, sample.label)
        once.forget(sample.label)
        note = f"forward takes other inputs, for which it may not be meant: {wrong} there"
        once(Reguessed(described_sample(subject.op, seen.subject.sample), note))
    return seen.subject


def _again(subject: Subject) -> Subject:
    """The op at the guess that took the place of the first before a crash."""
    with phase("rule"), preserved_state():
        return guess_otherwise(subject).subject or subject


def _covered(op: Op, samples: Sequence[Sample], coverage: Coverage) -> Covered:
    """What was reached up to now."""
    values = not_tried(op, samples, coverage)
    return Covered(coverage.functions(), values, coverage.note)


def _is_optional(first: Sample, sample: Sample) -> bool:
    """Whether ``sample`` was inferred beside ``first``, and differs in a tensor that is given or
    left out."""
    counts = [len(item.named_tensors(None)) for item in (first, sample)]
    dtypes = [{t.dtype for _, t in item.named_tensors(None)} for item in (first, sample)]
    same = bool(sample.moved) and sample.origin == first.origin == "inferred"
    return same and counts[0] != counts[1] and not dtypes[0].isdisjoint(dtypes[1])


def _look_further(
    first: Subject,
    others: Sequence[Sample],
    given: Sequence[Sample],
    rules: Sequence[Rule],
    emit: Emit,
    done: frozenset[tuple[str, str]],
    told: set[str],
    asked: TorchAsked,
    witness: Witness | None,
) -> None:
    """Look at further samples, which differ from that of ``first``, or from one of ``others``;
    ``given`` are all samples."""

    def explain(op: Op, sample: Sample, codes: tuple[str, ...]) -> None:
        def with_words(event: Event) -> None:
            if isinstance(event, Found) and sample.label not in event.finding.message:
                event.finding.message += f" {sample.label}"
            emit(event)

        wanted = [rule for rule in rules if rule.code.startswith(codes)]
        there = Subject(op, sample, first.settings, first.coverage)
        _examine_sample(there, wanted, with_words, done, asked, first=False, witness=witness)

    with phase("rule"), preserved_state():
        FurtherSamples(first, emit, done, explain, told, others, given).run()


def described_sample(op: Op, sample: Sample) -> SampleReport:
    """What a report shows of ``sample``: its arguments, and the parameters of a module."""
    report = sample.report(op.signature)
    if op.module is not None:
        for item in Problem(op, sample).parameters:
            report.args.append(replace(described(item.name, item.value), requires_grad=True))
    return report


class _EachDefectOnce:
    """Passes events on without findings of a defect that an earlier sample has shown already; the
    checks of every sample stay.

    Attributes:
        findings: those passed on.
        told: the inputs whose gradient was found wrong.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.findings: list[Finding] = []
        self.told: set[str] = set()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Found):
            if any(_defect(event.finding) == _defect(known) for known in self.findings):
                return
            self._keep(event.finding)
        self._emit(event)

    def forget(self, label: str) -> None:
        """Forget what was found at the sample of this label."""
        kept = [item for item in self.findings if item.sample != label]
        self.findings.clear()
        self.told.clear()
        for item in kept:
            self._keep(item)

    def _keep(self, finding: Finding) -> None:
        self.findings.append(finding)
        if finding.code == "GL401" and finding.input and finding.severity != "info":
            self.told.add(finding.input)


def _defect(found: Finding) -> tuple[Any, ...]:
    refused = found.evidence.get("dtype")  # each is said
    return (found.code, found.severity, found.input, found.output, found.cause, refused)


def expand_samples(
    op: Op, samples: Sequence[Sample], settings: Settings
) -> tuple[list[Sample], list[str]]:
    """The samples in every dtype and on every device asked for, labelled; and notes on what was
    left out. Without a dtype asked for, float64, or what the op accepts."""
    notes = []
    devices = [d for d in (op.devices or settings.devices) if d in settings.devices] or ["cpu"]
    names = settings.dtypes or op.dtypes
    found: list[Sample] = []
    for device in devices:
        if device == "cuda" and not torch.cuda.is_available():
            notes.append("checks on cuda are skipped: not available here")
            continue
        for sample in samples:
            if names is None:
                converted = sample if device == "cpu" else _moved(sample, device)
                chosen, note = accepted(op, converted, settings)
                if note and note not in notes:
                    notes.append(note)
                found.append(_labelled(chosen, sample.label, "", device))
                continue
            for name in names:
                converted = sample.converted(getattr(torch, name), device)
                converted, note = as_computed(op, converted, settings)
                if note and note not in notes:
                    notes.append(note)
                suffix = name if len(names) > 1 or name != "float64" else ""
                found.append(_labelled(converted, sample.label, suffix, device))
    return found, notes


def _moved(sample: Sample, device: str) -> Sample:
    floating = [
        t.dtype for _, t in sample.named_tensors(None) if t.is_floating_point() or t.is_complex()
    ]
    lowest = torch.float32 if torch.float32 in floating else torch.float64
    return sample.converted(lowest, device)


def _labelled(sample: Sample, label: str, dtype: str, device: str) -> Sample:
    parts = [part for part in (dtype, device if device != "cpu" else "") if part]
    sample.label = f"{label} [{', '.join(parts)}]" if parts else label
    return sample


def _examine_sample(
    subject: Subject,
    rules: Sequence[Rule],
    emit: Emit,
    done: frozenset[tuple[str, str]],
    asked: TorchAsked,
    *,
    first: bool,
    elsewhere: frozenset[str] = frozenset(),
    witness: Witness | None = None,
) -> bool:
    """Run the rules on one sample.

    Args:
        first: whether no sample ran before it: some rules look at one sample only.
        elsewhere: see :func:`examine`.
        witness: see :data:`Witness`.

    Returns:
        Whether the op supports the sample's dtype.
    """
    sample = subject.sample
    verdicts: dict[str, str] = {}
    for number, rule in enumerate(rules):
        subject.release({need for later in rules[number:] for need in later.needs})
        if (rule.code, sample.label) in done:
            continue
        if not first and rule.first_sample:
            emit(Skip(rule.code, "looks at the first sample only"))
            continue
        if rule.code in elsewhere:
            emit(Elsewhere(rule.code, sample.label))
            continue
        emit(Begin(rule.code, sample.label))
        outcome = _run(subject, rule, emit, rules)
        if witness is not None:
            witness(subject, outcome)
        verdicts[rule.code] = outcome.verdict
    with preserved_state():
        supported = not (verdicts and unsupported_dtype(subject))
        if supported and first:
            _report_first_sample(subject, emit, done)
        if supported:
            asked.about(subject, verdicts, first=first)
    subject.release(())
    return supported


def _watched(subject: Subject, rule: Rule) -> AbstractContextManager[None]:
    """Note what a rule of :data:`REACHING` reaches of the user's code, if something is left."""
    coverage = subject.coverage
    if coverage is None or not rule.code.startswith(REACHING) or coverage.full:
        return nullcontext()
    return coverage.watching(masks=rule.code == "GL402")


def _report_first_sample(subject: Subject, emit: Emit, done: frozenset[tuple[str, str]]) -> None:
    """Emit what is reported only for the first sample: randomness, anatomy."""
    sample = subject.sample
    try:
        if subject.run.error is None and draws_random_numbers(subject.problem):
            emit(Note("forward draws random numbers: every call starts from the same seed"))
    except OpRaised as raised:
        emit(Note(f"{raised.phase} raised {type(raised.error).__name__} when called again"))
    changed = list(module_state(subject.op.module).changed()) if subject.op.module else []
    if changed:
        names = ", ".join(f"`{name}`" for name in changed[:STATE_SHOWN])
        more = len(changed) - STATE_SHOWN
        names += f" and {more} more" if more > 0 else ""
        emit(Note(f"forward changes {names} of its module: every call starts from the first state"))
    if (ANATOMY, sample.label) not in done:
        emit(Begin(ANATOMY, sample.label))
        emit(Anatomy(anatomy(subject.run, subject.problem)))


def patience_for(subject: Subject, rule: Rule) -> Patience | None:
    """The limit of time for calls of ``rule`` on inputs that it chooses; None where it chooses
    none, or the op has not run."""
    if not rule.chooses or subject.run.error is not None:
        return None
    timeout = subject.settings.timeout
    return Patience(
        min(max(CHOSEN_SHARE * timeout, SLOWER * subject.run_s), MOST_CHOSEN_SHARE * timeout)
    )


def _not_supported(subject: Subject, rule: Rule) -> str:
    """Why ``rule`` is left out on a sample in a dtype that the op refuses; GL003 and GL004, which
    say that it does, are not."""
    refused = "" if rule.code in ("GL003", "GL004") else unsupported_dtype(subject)
    return refused and f"not supported in {refused}"


def _within_memory(outcome: Outcome, subject: Subject) -> Outcome:
    """``outcome``, or that memory ran out in this check: where the operator ran on its sample,
    copies that a check makes are what it was too much for."""
    if subject.run.error is not None:
        return outcome
    ran_out = [
        item
        for item in outcome.findings
        if is_memory_used_up(subject, str(item.evidence.get("original", "")))
    ]
    if not ran_out:
        return outcome
    left = [item for item in outcome.findings if item not in ran_out]
    if any_defect(left):
        return replace(outcome, findings=left)
    return replace(outcome, verdict="inconclusive", findings=left, note=MEMORY_RAN_OUT)


def _run(subject: Subject, rule: Rule, emit: Emit, rules: Sequence[Rule]) -> Outcome:
    """Run one rule and count its calls; an error that the op raises makes it inconclusive.
    Before the first rule, the cost of all ``rules`` is predicted and emitted."""
    problem = subject.problem
    forward, backward = problem.forward_calls, problem.backward_calls
    started = time.perf_counter()
    patience = None
    with phase("rule"), preserved_state():
        try:
            if subject.planned is None:
                with preserved_state():  # the rule may look for changes that planning makes
                    subject.planned = make_plan(subject, rules)
                emit(Predicted(subject.plan.predictions))
            patience = problem.patience = patience_for(subject, rule)
            left_out = _not_supported(subject, rule) or beyond_budget(subject, rule)
            with _watched(subject, rule):
                outcome = Outcome("skipped", note=left_out) if left_out else rule.probe(subject)
            if not subject.settings.untrusted:
                outcome = without_suppressed(outcome, subject.op.ignores)
            outcome = _within_memory(as_loud_as_evidence(outcome, subject.settings), subject)
        except OpRaised as raised:
            name = type(raised.error).__name__
            outcome = Outcome(
                "inconclusive",
                note=f"{raised.phase} raised {name} away from the sample's first call",
            )
            if isinstance(raised.error, NotTried):
                outcome = Outcome("skipped")
            elif is_memory_used_up(subject, str(raised.error)):
                outcome = inconclusive(MEMORY_RAN_OUT)
        except RuntimeError as error:
            if subject.run.error is not None or not is_memory_used_up(subject, str(error)):
                raise
            outcome = inconclusive(MEMORY_RAN_OUT)
        finally:
            problem.patience = None
    if patience is not None and patience.note:
        outcome.note = "; ".join(filter(None, (outcome.note, patience.note)))
    judged = subject.plan.pairs(rule.code) if outcome.verdict != "skipped" else None
    fewer = subject.plan.note(rule.code) if judged else ""
    if fewer:
        more = outcome.note if judged and judged[0] else ""
        outcome.note = f"{fewer}; {more}" if more else fewer
    emit(
        CheckDone(
            Check(
                rule.code,
                outcome.verdict,
                subject.sample.label,
                outcome.resolution,
                problem.forward_calls - forward,
                problem.backward_calls - backward,
                time.perf_counter() - started,
                outcome.note,
                pairs=judged[0] if judged else None,
                pairs_usual=judged[1] if judged else None,
                inputs=input_powers(subject, rule.code),
                help=next_step(subject, rule.code, outcome.note)
                if outcome.verdict == "inconclusive"
                else "",
                accepted=outcome.accepted,
            )
        ),
    )
    for finding in outcome.findings:
        emit(Found(finding))
    return outcome
