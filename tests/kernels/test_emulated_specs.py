"""The specifications of the reference operators hold for the kernels for CUDA, emulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.support.emulated_library import made_once
from tests.kernels.support.emulated_runs import run_all
from tests.kernels.support.stand_in import checked, codes


def test_specifications_hold(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = made_once(tmp_path_factory, "emulated_kernels", run_all) / "emulated.so"
    # The rules on transforms compile and trace, and ask nothing of kernels that others do not.
    reports = checked(library, tmp_path, monkeypatch, ignore=("GL9",))
    assert {name: codes(report) for name, report in reports.items()} == {
        name: [] for name in reports
    }
