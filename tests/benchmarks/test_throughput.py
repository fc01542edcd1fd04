"""The operators of the benchmark are what it says, and its sums are right."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.benchmarks import throughput
from tests.benchmarks.throughput import FEW, TEMPLATES, Measured, Took, write


def operators(path: Path) -> dict[str, type[torch.autograd.Function]]:
    scope: dict[str, type[torch.autograd.Function]] = {}
    exec(path.read_text(), scope)
    return {name: item for name, item in scope.items() if name.startswith("Op")}


def test_the_folder_is_as_it_says(tmp_path: Path) -> None:
    right = write(tmp_path / "a", 100)
    assert right == write(tmp_path / "b", 100)
    assert 50 < sum(right.values()) < 80
    counts = []
    for path in (tmp_path / "a").iterdir():
        assert path.read_text() == (tmp_path / "b" / path.name).read_text()
        classes = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        counts.append(len(classes))
    assert sum(counts) == len(right) == 100
    assert 1 <= min(counts) <= max(counts) <= 20


@pytest.mark.parametrize("number", range(len(TEMPLATES)))
@pytest.mark.parametrize("good", [True, False])
def test_each_template_is_right_or_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, good: bool
) -> None:
    """By torch's own check, which knows nothing of gradlint."""
    monkeypatch.setattr(throughput, "TEMPLATES", TEMPLATES[number : number + 1])
    monkeypatch.setattr(throughput, "WRONG", 0.0 if good else 1.0)
    assert set(write(tmp_path / "a", 3).values()) == {good}
    for path in (tmp_path / "a").iterdir():
        for op in operators(path).values():
            arguments = op.sample_inputs()  # type: ignore[attr-defined]
            assert torch.autograd.gradcheck(op.apply, arguments, raise_exception=False) == good


def test_the_sums() -> None:
    def run(seconds: float) -> Took:
        return Took(seconds, 1.0, 50.0, 0, {})

    found = Measured(
        dict.fromkeys(throughput.KINDS, run(20.0)),
        {"all rules": run(120.0), "first order": run(70.0)},
        run(1.2),
        torch_s=2.0,
        operators=FEW + 100,
    )
    assert found.each_s("all rules") == pytest.approx(1.0)
    rows = throughput.rows_of("this", found)
    assert rows[0] == ("this", "all rules", "1.00", "0.50", "10.0", "50")
    assert rows[1][2] == "2.00"
    assert rows[2][1] == "from the cache, 1.0 % of the first run"
    assert throughput.rows_of("this", replace(found, cached=None)) == rows[:2]


def test_a_revision_without_a_cache_is_recognised(tmp_path: Path) -> None:
    assert throughput.has_cache(throughput.ROOT)
    package = tmp_path / "gradlint"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("print('Options: --seed N, --report FORMAT')")
    assert not throughput.has_cache(tmp_path)
