"""The specs of the reference operators, checked on another library of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.native.roots import specs_root
from gradlint.running.run import execute

#: Loads a library in place of the right one.
MODULE = """
from pathlib import Path
import torch
from gradlint.native import reference

reference._loaded[0] = Path({library!r})
torch.ops.load_library({library!r})
"""


def checked(
    library: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    specs: Sequence[Path] = (),
    **settings: object,
) -> dict[str, TargetReport]:
    """Name of a spec, default all → its report in float64; ``settings`` are further fields of
    :class:`Settings`."""
    (folder / "stand_in.py").write_text(MODULE.format(library=str(library)))
    monkeypatch.syspath_prepend(folder)
    chosen = Settings(
        seed=1,
        jobs=2,
        timeout=300.0,
        dtypes=("float64",),
        imports=("stand_in",),
        **settings,  # type: ignore[arg-type]
    )
    specs = specs or sorted(specs_root().glob("*.yaml"))
    result = execute([str(path) for path in specs], chosen)
    assert (result.usage, result.internal) == ([], [])
    return {path.stem: report for path, report in zip(specs, result.report.targets, strict=True)}


def codes(report: TargetReport) -> list[str]:
    """Of the findings that are more than information."""
    return [finding.code for finding in report.findings if finding.severity != "info"]
