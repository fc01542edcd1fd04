"""Changes of several operators brought together, a text a file, and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradlint.base.errors import GradlintError
from gradlint.model.op import Overlay
from gradlint.model.settings import Settings
from gradlint.repair.candidate import Edit, changed
from gradlint.repair.search import Mended
from gradlint.repair.source import Source, edits_between, write
from gradlint.running.trial import examined
from gradlint.targets.resolve import resolve
from gradlint.targets.source_file import shown_path


def write_all(
    found: Sequence[Mended], settings: Settings
) -> tuple[list[Mended], list[GradlintError]]:
    """Write the fixes of ``found``, file by file.

    Where operators of one file have fixes, these are made together, and each of the operators is
    checked once more with all of them.

    Args:
        settings: of the run.

    Returns:
        Those whose fix is written, and why others are not.
    """
    files: dict[str, list[Mended]] = {}
    for one in found:
        if one.fix is not None and one.source is not None:
            files.setdefault(one.source.path, []).append(one)
    written: list[Mended] = []
    errors = []
    for some in files.values():
        try:
            kept, left = _write(some, settings)
        except GradlintError as error:
            errors.append(error)
            continue
        written += kept
        errors += [left] if left is not None else []
    return written, errors


def _write(some: list[Mended], settings: Settings) -> tuple[list[Mended], GradlintError | None]:
    """Write the fixes of one file; those that go together, if not all do.

    Returns:
        Those whose fix is written, and what is left to do.

    Raises:
        GradlintError: it can't be written, or was changed meanwhile.
    """
    source = some[0].source
    assert source is not None
    kept, text = some[:1], some[0].text
    edits = set(edits_between(source.text, text))
    for one in some[1:]:
        more = edits | set(edits_between(source.text, one.text))
        new = changed(source.text, _distinct(more)) if one.source == source else None
        if new is not None and _all_pass([*kept, one], source, new, settings):
            kept, text, edits = [*kept, one], new, more
    write(source, text)
    left = ", ".join(one.target for one in some if one not in kept)
    if not left:
        return kept, None
    return kept, GradlintError(
        "changed, but not all fixes of it go together",
        place=shown_path(source.path),
        hint=f"run gradlint fix again for {left}",
    )


def _distinct(edits: set[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda one: (one.start, one.end))


def _all_pass(some: list[Mended], source: Source, text: str, settings: Settings) -> bool:
    overlay = Overlay(source.path, source.encoded(text) or b"")
    refs = [replace(resolve(one.target, settings)[0], overlay=overlay) for one in some]
    return all(report.verdict == "pass" for report in examined(refs, settings))
