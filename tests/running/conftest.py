"""Programs started by these tests find the gradlint that is tested."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, before] if before else [ROOT]))
