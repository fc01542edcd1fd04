"""What would run on one op, without running it: what a worker does for ``gradlint list``."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.checking.examine import described_sample, expand_samples, ignored_rules
from gradlint.model.events import Emit, Note, Samples, Skip
from gradlint.model.op import Op
from gradlint.model.rule import Rule
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE, select_rules
from gradlint.trace.global_state import preserved_state


def list_only(
    op: Op,
    samples: Sequence[Sample],
    settings: Settings,
    emit: Emit,
    done: frozenset[tuple[str, str]] = frozenset(),
) -> None:
    """Emit the samples that the rules would run on, and the rules that would be left out.

    It stands in for ``gradlint.checking.examine.examine`` and takes what that takes.
    """
    rules = [rule for rule in select_rules(settings, CATALOGUE) if rule.has_probe]
    with preserved_state():
        variants, notes = expand_samples(op, samples, settings)
    for note in (*op.notes, *notes):
        emit(Note(note))
    left_out = ignored_rules(op, rules, settings)
    on_cuda = any(tensor.is_cuda for sample in variants for _, tensor in sample.named_tensors(None))
    for rule in rules:
        reason = left_out.get(rule.code) or _why_not(rule, op, settings, on_cuda=on_cuda)
        if reason:
            emit(Skip(rule.code, reason))
    emit(Samples([described_sample(op, sample) for sample in variants]))


def _why_not(rule: Rule, op: Op, settings: Settings, *, on_cuda: bool) -> str:
    if rule.order > settings.order:
        return "second derivatives are left out by --order 1"
    if op.order is not None and rule.order > op.order:
        return "the op promises first derivatives only"
    if rule.family == "device" and not on_cuda:
        return "needs a sample on cuda: --device cpu,cuda"
    return ""
