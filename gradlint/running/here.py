"""A check in this process, for live objects that can't travel to a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from gradlint.checking.examine import examine
from gradlint.model.op import Op, OpRef
from gradlint.model.report import TargetReport
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.ops.phase import PHASES, install
from gradlint.running import findings as _findings
from gradlint.running._collect import Collector
from gradlint.running._stack import Stack
from gradlint.running.findings import Scene


def run_here(op: Op, samples: Sequence[Sample], settings: Settings) -> TargetReport:
    """Run the rules on ``op`` in this process.

    A crash of the op takes this process with it; ``sys.exit`` and lack of memory are reported.
    Global state is the caller's to preserve (``gradlint.trace.global_state.preserved_state``).

    Args:
        op: the loaded operator.
        samples: what to run it on.
        settings: of the run.
    """
    report = TargetReport(op.target, op.kind, location=_findings.relative(op.location))
    collector = Collector(report, settings)
    ref = OpRef(op.target, "module", op.target, op.name, op.kind, op.location)
    last = ["rule"]
    started = time.monotonic()

    def watch(index: int) -> None:
        if PHASES[index] in ("forward", "backward"):
            last[0] = PHASES[index]

    def scene(trace: TracebackType | None) -> Scene:
        frames = []
        while trace is not None:
            code = trace.tb_frame.f_code
            frames.append((code.co_filename, trace.tb_lineno, code.co_name))
            trace = trace.tb_next
        return Scene(ref, settings, last[0], collector.current, Stack.of(reversed(frames)))

    install(watch)
    try:
        examine(op, samples, settings, collector.take, isolated=False)
    except MemoryError as error:
        where = scene(error.__traceback__)
        report.findings.append(_findings.memory(where, str(error)))
    except SystemExit as error:
        code = (
            error.code
            if error.code is None
            else error.code
            if isinstance(error.code, int)
            else str(error.code)
        )
        report.findings.append(_findings.raised(scene(error.__traceback__), "SystemExit", code))
    finally:
        install(None)
    collector.finish()
    report.duration_s = time.monotonic() - started
    return report
