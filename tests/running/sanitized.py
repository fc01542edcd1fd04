"""Stands in for the rules under a sanitizer: says that the samples are on cuda, and shows what
the worker's process was given."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from gradlint.model.events import Begin, CheckDone, Emit, Samples
from gradlint.model.report import Check

CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"


def examine(op: Any, samples: Any, settings: Any, emit: Emit, done: Any) -> None:
    """The contract of ``gradlint.checking.examine``."""
    reports = [
        replace(report, args=[replace(arg, device="cuda:0") for arg in report.args])
        for report in (sample.report(op.signature) for sample in samples)
    ]
    emit(Samples(reports))
    emit(Begin("GL401", samples[0].label))
    if os.environ.get("STUB_HANGS"):
        time.sleep(1000)
    told = f"{os.environ.get('UNDER_TOOL')} {os.environ.get(CACHING)} {settings.select}"
    emit(CheckDone(Check("GL401", "pass", samples[0].label, note=told)))
