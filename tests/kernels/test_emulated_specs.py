"""The specifications of the reference operators hold for the kernels for CUDA, emulated."""

from __future__ import annotations

from pathlib import Path

import pytest
from _emulated_library import made_once
from _emulated_runs import run_all
from _linked import STAND_IN

from gradlint.config import Settings
from gradlint.native import specs_root
from gradlint.running import execute


def test_specifications_hold(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = made_once(tmp_path_factory, "emulated_kernels", run_all) / "emulated.so"
    (tmp_path / "emulated_reference.py").write_text(STAND_IN.format(library=str(library)))
    monkeypatch.syspath_prepend(tmp_path)
    specs = sorted(specs_root().glob("*.yaml"))
    settings = Settings(
        seed=1,
        jobs=2,
        timeout=300.0,
        dtypes=("float64",),
        imports=("emulated_reference",),
    )
    result = execute([str(path) for path in specs], settings)
    assert (result.usage, result.internal) == ([], [])
    found = {
        path.stem: [finding.code for finding in report.findings if finding.severity != "info"]
        for path, report in zip(specs, result.report.targets, strict=True)
    }
    assert found == {path.stem: [] for path in specs}
