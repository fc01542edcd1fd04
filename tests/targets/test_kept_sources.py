"""A folder of any number of files takes no more memory than the latest of them."""

from __future__ import annotations

from pathlib import Path

from gradlint.targets import _static, source_file
from gradlint.targets._static import static_module
from gradlint.targets.source_file import MOST_KEPT, read_source


def test_the_latest_files_are_kept(tmp_path: Path) -> None:
    paths = [tmp_path / f"ops_{number}.py" for number in range(MOST_KEPT + 3)]
    for number, path in enumerate(paths):
        path.write_text(f"class Op{number}:\n    pass\n")
        module = static_module(str(path))
        assert module is not None
        assert list(module.classes) == [f"Op{number}"]
    assert len(source_file._cache) <= MOST_KEPT
    assert len(_static._cache) <= MOST_KEPT
    latest = read_source(str(paths[-1]))
    assert read_source(str(paths[-1])) is latest
    again = read_source(str(paths[0]))  # which is no longer there
    assert again is not None
    assert again.lines[:1] == ["class Op0:"]
