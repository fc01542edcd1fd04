"""What a wheel carries: every package, the kernels and the specs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gradlint.native.roots import kernels_root, specs_root, tree_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["tool"]["setuptools"]
    return found


def test_every_package_is_listed(settings: dict[str, Any]) -> None:
    there = [path.parent.relative_to(ROOT) for path in (ROOT / "gradlint").rglob("__init__.py")]
    carried = settings["package-dir"]
    assert carried == {"gradlint.native._kernels": "kernels", "gradlint.native._specs": "specs"}
    assert settings["packages"] == [*sorted(".".join(p.parts) for p in there), *carried]


def test_the_patterns_take_every_source(settings: dict[str, Any]) -> None:
    patterns = [p.removeprefix("**/") for p in settings["package-data"]["gradlint.native._kernels"]]
    sources = tree_files(kernels_root())
    assert sources
    assert [p.name for p in sources if not any(fnmatch(p.name, one) for one in patterns)] == []


def test_the_checkout_is_used_where_there_is_one() -> None:
    assert (kernels_root(), specs_root()) == (ROOT / "kernels", ROOT / "specs")


@pytest.mark.skipif(find_spec("setuptools") is None, reason="setuptools is not installed")
def test_a_wheel_carries_kernels_and_specs(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    listed = ["pyproject.toml", "README.md"]
    for path in [*tree_files(kernels_root()), *specs_root().glob("*.*")]:
        listed.append(str(path.relative_to(ROOT)))
    for path in (ROOT / "gradlint").rglob("*.py"):
        listed.append(str(path.relative_to(ROOT)))
    for name in listed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools.build_meta import build_wheel; print(build_wheel('.'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = copy.glob("*.whl")
    carried = set(zipfile.ZipFile(wheel).namelist())
    for name in listed[2:]:
        wanted = name
        for folder, inside in (("kernels/", "_kernels/"), ("specs/", "_specs/")):
            if name.startswith(folder):
                wanted = f"gradlint/native/{inside}{name.removeprefix(folder)}"
        assert wanted in carried
