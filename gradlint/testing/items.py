"""Test items that check one operator, and what is said of their outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest._code.code import (
    ExceptionInfo,
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)

from gradlint.base.errors import CheckFailedError, GradlintError
from gradlint.model.report import Report, TargetReport, failing
from gradlint.model.resolve import resolve_settings
from gradlint.report.render import render
from gradlint.rules.catalogue import rule_names
from gradlint.running.run import Run, execute
from gradlint.testing.gpu import on_own_gpu
from gradlint.testing.options import options, seed_of

#: Columns of a report in the output of pytest.
_WIDTH = 100


class InternalFailure(Exception):
    """gradlint itself failed; the text is the traceback."""


class CheckItem(pytest.Item):
    """One operator whose gradients must be right.

    Args:
        marks: those of the operator; of ``gradlint`` the options of the check.
        line: where the operator begins, counted from 1.
    """

    def __init__(
        self, marks: Iterable[pytest.Mark] = (), line: int | None = None, **more: Any
    ) -> None:
        """See the class."""
        super().__init__(**more)
        self.own_markers.extend(marks)
        self.keywords.update({mark.name: mark for mark in self.own_markers})
        self.add_marker("gradlint")
        self.report: Report | None = None
        self._line = line

    def given(self) -> dict[str, Any]:
        """The options of the check: those of the command line, which the markers override, and the
        seed."""
        given = {"seed": seed_of(self.config, self.nodeid), **options(self.config)}
        for mark in reversed([*self.iter_markers("gradlint")]):
            if mark.args:
                raise GradlintError(
                    f"the marker takes no positional arguments, got {mark.args[0]!r}",
                    place="pytest.mark.gradlint",
                    hint="give them by name, as in pytest.mark.gradlint(dtypes=['float32'])",
                )
            given.update(mark.kwargs)
        return given

    def reportinfo(self) -> tuple[Any, int, str]:
        """Where the operator is, as pytest wants to know it."""
        return self.path, (self._line or 1) - 1, self.name

    def conclude(self, report: Report) -> None:
        """Pass, skip or fail as ``report`` says.

        Raises:
            CheckFailedError: something is found that fails the run.
        """
        self.report = report
        verdicts = {target.verdict for target in report.targets}
        self.user_properties += [
            ("gradlint_verdict", _worst(report)),
            ("gradlint_findings", " ".join(finding.code for finding in report.findings)),
            ("gradlint_seed", report.seed),
        ]
        if report.exit_code == 1:
            raise CheckFailedError(render(report, width=_WIDTH))
        if report.findings:
            self.add_report_section("call", "gradlint", render(report, width=_WIDTH))
        if report.exit_code == 5 or verdicts == {"inconclusive"}:
            # As for a skip by a marker: the place is that of the operator.
            raise pytest.skip.Exception(_reason(report), _use_item_location=True)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report, or the user's mistake, without a traceback through gradlint."""
        error = excinfo.value
        if isinstance(error, CheckFailedError) and self.report is not None:
            return self._shown(str(error), headline(self.report))
        if isinstance(error, (GradlintError, InternalFailure)):
            return self._shown(f"{error}\n", str(error).splitlines()[0])
        return super().repr_failure(excinfo)

    def _shown(self, text: str, headline: str) -> ReprExceptionInfo:
        place = ReprFileLocation(str(self.path), self._line or 1, headline)
        trace = ReprTraceback([ReprEntryNative(text.splitlines(keepends=True))], None, "native")
        return ReprExceptionInfo(reprtraceback=trace, reprcrash=place)


class TargetItem(CheckItem):
    """An operator that is named by a text; it is checked in isolated workers, as on the command
    line, and this process imports neither it nor torch."""

    def __init__(self, target: str, inputs: str | None = None, **more: Any) -> None:
        """``target`` and ``inputs`` are those of the command line."""
        super().__init__(**more)
        self.target = target
        self.inputs = inputs

    def runtest(self) -> None:
        """Check it."""
        flags = {**self.given(), **({"inputs": self.inputs} if self.inputs else {})}
        settings = resolve_settings(flags, rules=rule_names())
        with on_own_gpu(self.config, settings.devices):
            run = execute([self.target], settings)
        self._refuse(run)
        self.conclude(run.report)

    def _refuse(self, run: Run) -> None:
        if run.report.interrupted:
            raise KeyboardInterrupt
        if run.internal:
            raise InternalFailure(f"internal error of gradlint: {run.internal[0]}")
        if run.usage:
            raise run.usage[0]


class ObjectItem(CheckItem):
    """An operator that a test module holds; it is checked in this process."""

    def __init__(self, op: Any, inputs: Any, **more: Any) -> None:
        """``op`` and ``inputs`` are those of ``gradlint.check``."""
        super().__init__(**more)
        self.op = op
        self.inputs = inputs
        if self._line is None and hasattr(op, "__code__"):
            self._line = op.__code__.co_firstlineno

    def runtest(self) -> None:
        """Check it."""
        # It imports torch, and a run of specs alone does without.
        from gradlint.testing.live import checked  # noqa: PLC0415

        given = self.given()
        inputs = given.pop("inputs", None) if self.inputs is None else self.inputs
        self.conclude(checked(self.config, self.op, inputs, given))


def _worst(report: Report) -> str:
    """The worst verdict of the targets."""
    order = ("error", "fail", "inconclusive", "pass", "skipped")
    return min((target.verdict for target in report.targets), key=order.index, default="skipped")


def headline(report: Report) -> str:
    """What fails, in a line: the first finding and the number of others."""
    wrong = [one for one in report.findings if failing(one, report.fail_on)]
    if wrong:
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return f"{wrong[0].code} {wrong[0].message}{others}"
    return _reason(report)


def _reason(report: Report) -> str:
    """Why nothing could be judged, in a line."""
    told = [*report.skipped.values(), *(text for one in report.targets for text in _said(one))]
    verdict = _worst(report)
    begin = "inconclusive" if verdict == "inconclusive" else "nothing was checked"
    return ": ".join([begin, *told[:1]])


def _said(target: TargetReport) -> list[str]:
    unsure = [f"{one.code} {one.note}" for one in target.checks if one.verdict == "inconclusive"]
    skipped = [f"{one.code} {one.note}" for one in target.checks if one.verdict == "skipped"]
    return [*unsure, *target.notes, *skipped]
