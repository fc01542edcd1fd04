"""Every faulty twin that shows on the host is found, under its own code; mended, it passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from _faulty import FOLDER, TWINS, Twin

from gradlint.config import Settings
from gradlint.report import TargetReport
from gradlint.running import execute

#: The rules on transforms, which compile, are left out: they take most of the time and find
#: consequences only.
SETTINGS = Settings(seed=1, jobs=2, timeout=120.0, ignore=("GL9",))

Checked = Callable[[str, str], TargetReport]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """A function (name, "faulty" or "mended") → the report on the CPU."""
    folder = tmp_path_factory.mktemp("mended")
    found = {}
    for dtype in sorted({twin.dtype for twin in TWINS}):
        twins = [twin for twin in TWINS if twin.dtype == dtype]
        paths = {("faulty", twin.name): str(twin.spec) for twin in twins}
        paths |= {("mended", twin.name): str(twin.mended(folder)) for twin in twins}
        result = execute(list(paths.values()), replace(SETTINGS, dtypes=(dtype,)))
        assert (result.usage, result.internal) == ([], [])
        found.update(zip(paths, result.report.targets, strict=True))
    return lambda name, kind: found[kind, name]


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


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_twin_is_found_where_it_shows(checked: Checked, twin: Twin) -> None:
    report = checked(twin.name, "faulty")
    roots = {f.code for f in report.findings if f.severity != "info" and f.follows is None}
    assert roots == (set(twin.codes) if twin.shows == "host" else set())
    assert report.verdict == ("fail" if twin.shows == "host" else "pass")


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_mended_twin_passes(checked: Checked, twin: Twin) -> None:
    report = checked(twin.name, "mended")
    assert [f.message for f in report.findings if f.severity != "info"] == []
    assert report.verdict == "pass"
