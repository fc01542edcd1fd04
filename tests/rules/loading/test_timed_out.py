"""What a time-out advises fits what was running."""

from __future__ import annotations

import pytest

from gradlint.experiments.loading.process_findings import WorkerEnd
from gradlint.model.settings import Settings
from gradlint.rules.loading.timed_out import make_finding


@pytest.mark.parametrize(("phase", "inputs"), [("import", False), ("forward", True)])
def test_smaller_inputs_are_no_help_to_an_import(phase: str, inputs: bool) -> None:
    finding = make_finding(WorkerEnd("ops.py:Op", phase, Settings()))
    assert ("--inputs" in finding.help) == inputs
    assert "--timeout" in finding.help
