"""Every faulty twin that shows on the host is found, under its own code; mended, it passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import execute
from tests.kernels.support.faulty import FOLDER, TWINS, Twin

#: The rules on transforms, which compile, are left out: they take most of the time and find
#: consequences only.
SETTINGS = Settings(seed=1, jobs=2, timeout=120.0, ignore=("GL9",))


def checked(specs: dict[Twin, str]) -> dict[str, TargetReport]:
    """Name → its report on the CPU."""
    found = {}
    for dtype in sorted({twin.dtype for twin in specs}):
        paths = {twin.name: path for twin, path in specs.items() if twin.dtype == dtype}
        result = execute(list(paths.values()), replace(SETTINGS, dtypes=(dtype,)))
        assert (result.usage, result.internal) == ([], [])
        found.update(zip(paths, result.report.targets, strict=True))
    return found


def test_the_table_has_every_twin() -> None:
    names = [twin.name for twin in TWINS]
    assert names == sorted(names)
    assert len(names) >= 12
    for ending in (".cu", ".yaml"):
        files = {path.stem for path in FOLDER.glob(f"*{ending}")} - {"device"}
        assert files == set(names)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_twin_says_what_is_wrong_and_which_rule_finds_it(twin: Twin) -> None:
    text = (FOLDER / f"{twin.name}.cu").read_text(encoding="utf-8")
    head = text.partition("#include")[0].replace("\n// ", " ")
    assert head.startswith("// ")
    assert twin.codes[0] in head


# One test each for all twins: shared out to several processes they would be checked in each.


def test_twins_are_found_where_they_show() -> None:
    found = {}
    for name, report in checked({twin: str(twin.spec) for twin in TWINS}).items():
        roots = {f.code for f in report.findings if f.severity != "info" and f.follows is None}
        found[name] = (report.verdict, roots)
    assert found == {
        twin.name: ("fail", set(twin.codes)) if twin.shows == "host" else ("pass", set())
        for twin in TWINS
    }


def test_mended_twins_pass(tmp_path: Path) -> None:
    found = {}
    for name, report in checked({twin: str(twin.mended(tmp_path)) for twin in TWINS}).items():
        told = [f.message for f in report.findings if f.severity != "info"]
        found[name] = (report.verdict, told)
    assert found == {twin.name: ("pass", []) for twin in TWINS}
