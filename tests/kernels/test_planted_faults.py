"""A fault planted in each reference operator is found, under its own code."""

from __future__ import annotations

from pathlib import Path

import pytest
from _linked import STAND_IN
from _wrong_library import FAULTS, wrong_library

from gradlint.config import Settings
from gradlint.native import kernels_root, specs_root
from gradlint.running import execute

#: Specs whose operator is that of another kernel.
KERNELS = {"gumbel_softmax_hard": "gumbel_softmax", "scale_in_place": "scale"}


def test_every_kernel_and_spec_has_a_fault() -> None:
    kernels = [fault.kernel for fault in FAULTS]
    assert kernels == sorted(path.stem for path in kernels_root().glob("*.cu"))
    specs = {path.stem for path in specs_root().glob("*.yaml")}
    assert {KERNELS.get(name, name) for name in specs} == set(kernels)


def test_every_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = wrong_library(tmp_path)
    (tmp_path / "wrong_reference.py").write_text(STAND_IN.format(library=str(library)))
    monkeypatch.syspath_prepend(tmp_path)
    specs = sorted(specs_root().glob("*.yaml"))
    settings = Settings(
        seed=1,
        jobs=2,
        timeout=120.0,
        dtypes=("float64",),
        select=("GL401", "GL501"),
        imports=("wrong_reference",),
    )
    result = execute([str(path) for path in specs], settings)
    assert (result.usage, result.internal) == ([], [])
    codes = {fault.kernel: fault.code for fault in FAULTS}
    expected = {path.stem: codes[KERNELS.get(path.stem, path.stem)] for path in specs}
    found = {}
    for path, report in zip(specs, result.report.targets, strict=True):
        roots = sorted({f.code for f in report.findings if f.severity != "info"})
        found[path.stem] = roots[0] if roots else report.verdict
    assert found == expected
