"""A check in the process of the tests, by the options of pytest."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.api import check
from gradlint.model.report import Report
from gradlint.model.resolve import resolve_settings
from gradlint.rules.catalogue import rule_names
from gradlint.testing.gpu import worker_number

#: Arguments of ``gradlint.check`` for which None or nothing means: as the settings say.
_FROM_SETTINGS: dict[str, Any] = {"devices": (), "order": None}


def checked(config: pytest.Config, op: Any, inputs: Any, given: dict[str, Any]) -> Report:
    """The report of ``gradlint.check``.

    Args:
        config: that of the run; its worker chooses the GPU.
        op: the operator, or the text of a target.
        inputs: as for ``gradlint.check``.
        given: further arguments of ``gradlint.check``, and ``fail_on``.
    """
    arguments = {**_FROM_SETTINGS, **given}
    fail_on = arguments.pop("fail_on", None)
    number = worker_number(config)
    if number is not None and torch.cuda.is_available() and "cuda" in str(arguments["devices"]):
        with torch.cuda.device(number % torch.cuda.device_count()):
            report = check(op, inputs, **arguments)
    else:
        report = check(op, inputs, **arguments)
    if fail_on is not None:
        report.fail_on = resolve_settings({"fail_on": fail_on}, rules=rule_names()).fail_on
    return report
