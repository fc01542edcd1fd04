"""Pages that the code cites exist, have the cited sections, and link to files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradlint.numerics.verdict import MIN_RESOLUTION, TOLERATED

ROOT = Path(__file__).parents[2]
PAGE = "gradlint/docs/numerics.md"

#: A path that ends in ``.md``, and the section cited after it.
CITED = re.compile(r"(?P<page>[\w./-]*\w\.md)\b")
SECTION = re.compile(r'numerics\.md, sections? (?P<names>"[^"]+"(?: and "[^"]+")?)')


def sources() -> list[Path]:
    return sorted((ROOT / "gradlint").rglob("*.py"))


def unwrapped(path: Path) -> str:
    """The text of a module with the line breaks of its comments and docstrings removed."""
    return re.sub(r"\s*\n\s*(#:?\s*)?", " ", path.read_text(encoding="utf-8"))


def test_every_cited_page_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {found['page']}"
        for path in sources()
        for found in CITED.finditer(path.read_text(encoding="utf-8"))
        if not any(
            (folder / found["page"]).is_file()
            for folder in (ROOT, ROOT / "gradlint", ROOT / "gradlint" / "docs", path.parent)
        )
    ]
    assert missing == []


def test_every_cited_section_exists() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    cited = {
        name
        for path in sources()
        for found in SECTION.finditer(unwrapped(path))
        for name in re.findall(r'"([^"]+)"', found["names"])
    }
    assert len(cited) > 5
    assert cited - set(headings) == set()


@pytest.mark.parametrize("page", sorted((ROOT / "gradlint" / "docs").glob("*.md")), ids=str)
def test_links_of_the_pages_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for name, limits in (("TOLERATED", TOLERATED), ("MIN_RESOLUTION", MIN_RESOLUTION)):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        cells = [float(cell) for cell in row.split("|")[2:6]]
        assert cells == [limits[bits] for bits in (53, 24, 11, 8)]
