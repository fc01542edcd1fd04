"""A fault planted in each reference operator is found, under its own code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradlint.native.roots import kernels_root, specs_root
from tests.kernels.support.stand_in import checked, codes
from tests.kernels.support.wrong_library import FAULTS, wrong_library

#: Specs whose operator is that of another kernel.
KERNELS = {"gumbel_softmax_hard": "gumbel_softmax", "scale_in_place": "scale"}


def test_every_kernel_and_spec_has_a_fault() -> None:
    kernels = [fault.kernel for fault in FAULTS]
    assert kernels == sorted(path.stem for path in kernels_root().glob("*.cu"))
    specs = {path.stem for path in specs_root().glob("*.yaml")}
    assert {KERNELS.get(name, name) for name in specs} == set(kernels)


def first_sizes(folder: Path) -> list[Path]:
    """The specs with the first of all sizes alone, at which faults show: all would be diagnosed."""
    made = []
    for path in sorted(specs_root().glob("*.yaml")):
        text, count = re.subn(
            r"^dims: .*$",
            lambda dims: re.sub(r"\[(\d+)[^]]*\]", r"\1", dims[0]),
            path.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
        assert count == 1, path
        made.append(folder / path.name)
        made[-1].write_text(text, encoding="utf-8")
    return made


def test_every_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, specs = wrong_library(tmp_path), first_sizes(tmp_path)
    reports = checked(library, tmp_path, monkeypatch, specs, select=("GL401", "GL501"))
    planted = {fault.kernel: fault.code for fault in FAULTS}
    found = {name: min(codes(report), default=report.verdict) for name, report in reports.items()}
    assert found == {name: planted[KERNELS.get(name, name)] for name in reports}
    assert len(found) == len(specs)
