"""torch's own checks: on which samples they run, and when."""

from __future__ import annotations

from gradlint.checking.torch_verdict import torch_verdict
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import Subject
from gradlint.model.events import Begin, Emit, TorchCheck, TorchVerdictMade
from gradlint.model.report import TorchVerdict
from gradlint.ops.phase import phase


class TorchAsked:
    """torch's own checks: on the first sample, and where that passes, on the first one that fails,
    so that its verdict stands beside the finding that it is compared with.

    Args:
        emit: called with each verdict.
        done: (check, sample label) pairs not to be run again, after a crash.
    """

    CHECKS: tuple[tuple[TorchCheck, str, tuple[str, ...]], ...] = (
        ("gradcheck", "GL401", ("GL1", "GL2", "GL3", "GL4")),
        ("gradgradcheck", "GL501", ("GL5",)),
    )

    def __init__(self, emit: Emit, done: frozenset[tuple[str, str]]) -> None:
        self._emit, self._done = emit, done
        self._failed: set[str] = set()

    def about(self, subject: Subject, verdicts: dict[str, str], *, first: bool) -> None:
        """Ask torch about the sample of ``subject``, where that is due.

        Args:
            verdicts: code → verdict of the checks on this sample.
        """
        for name, code, families in self.CHECKS:
            failing = [c for c, v in verdicts.items() if v == "fail" and c.startswith(families)]
            due = first or (bool(failing) and name not in self._failed)
            if failing:
                self._failed.add(name)
            label = subject.sample.label
            if not due or code not in verdicts or (name, label) in self._done:
                continue
            if subject.run.error is None:
                self._ask(subject, name, "fail" if failing else verdicts[code], failing)

    def _ask(self, subject: Subject, name: TorchCheck, ours: str, failing: list[str]) -> None:
        label = subject.sample.label
        self._emit(Begin(name, label))
        left_out = ""
        if not subject.plan.torch:
            left_out = f"left out: beyond --max-calls {subject.plan.budget}"
        elif subject.made("make_guarded") and subject.once(make_guarded).freed:
            left_out = "left out: the op frees memory that it is given, which torch's check reads"
        if left_out:
            verdict = TorchVerdict("fast", "skipped", left_out, sample=label)
        else:
            with phase("rule"):
                verdict = torch_verdict(subject, name, ours, failing)
        self._emit(TorchVerdictMade(name, verdict))
