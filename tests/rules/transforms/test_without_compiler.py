"""What keeps ``torch.compile`` from running is said, whatever its import raises."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

#: From the folder that it is run in, as ``python -m`` and an empty entry of PYTHONPATH do.
SCRIPT = """
import sys
sys.path.insert(0, ".")
from gradlint.experiments.transforms.compiled import why_not_compiled
print(why_not_compiled())
"""


def why_not(folder: Path) -> str:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(find_spec("triton") is not None, reason="the installed triton comes first")
def test_a_folder_in_place_of_triton_is_named(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    said = why_not(tmp_path)
    assert said.startswith("torch.compile can't be loaded: AttributeError: module 'triton'")
    assert said.endswith(
        f"(the folder {tmp_path / 'triton'} is taken for the package triton: run from elsewhere)"
    )


def test_a_module_that_can_not_be_imported_is_as_if_absent(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("raise ImportError('built for another Python')\n")
    assert why_not(tmp_path) == ""
