"""The reference operators on a GPU: as on the CPU, on any stream, on any device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.model.settings import Settings
from gradlint.native.roots import specs_root
from gradlint.rules.catalogue import by_code
from tests.kernels.support.agreement import SETTINGS, SHARES, disagreement, opened

SPECS = sorted(specs_root().glob("*.yaml"))

DTYPES = sorted(SHARES, key=str)


def devices_needed(count: int) -> pytest.MarkDecorator:
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return pytest.mark.skipif(found < count, reason=f"needs {count} CUDA device(s), found {found}")


def on_cuda(path: Path) -> Subject:
    op, samples = opened(path)
    settings = Settings(seed=1, devices=("cuda",))
    return Subject(op, samples[0].converted(torch.float32, "cuda"), settings)


@pytest.mark.cuda
@devices_needed(1)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_it_agrees_with_the_cpu(path: Path, dtype: torch.dtype) -> None:
    assert disagreement(path, dtype, "cuda") <= 1.0


@pytest.mark.cuda
@devices_needed(1)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_it_runs_on_the_current_stream(path: Path) -> None:
    rule = by_code("GL803")
    assert rule is not None
    assert rule.probe is not None
    outcome = rule.probe(on_cuda(path))
    assert [finding.message for finding in outcome.findings] == []
    assert outcome.verdict == "pass", outcome.note


@pytest.mark.cuda
@devices_needed(2)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_it_runs_on_the_device_of_its_tensors(path: Path) -> None:
    rule = by_code("GL804")
    assert rule is not None
    assert rule.probe is not None
    outcome = rule.probe(on_cuda(path))
    assert [finding.message for finding in outcome.findings] == []
    assert outcome.verdict == "pass", outcome.note


@pytest.mark.cuda
@devices_needed(1)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_it_gives_the_same_bits_every_time(path: Path) -> None:
    first, second = (on_cuda(path).run for _ in range(2))
    for a, b in zip(first.outputs, second.outputs, strict=True):
        assert torch.equal(a.value, b.value)
    for g, h in zip(first.gradients or [], second.gradients or [], strict=True):
        assert (g is None and h is None) or torch.equal(g, h)


def test_the_comparison_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    path = specs_root() / "square.yaml"
    assert disagreement(path, torch.float32, "cpu") == 0.0
    op, samples = opened(path)
    sample = samples[0].converted(torch.float64, "cpu")
    calls = iter((lambda x: x * x, lambda x: x * x + 1e-9 * x))

    def opened_twice(_: Path) -> object:
        return op, [sample]

    def results(op: object, sample: object) -> list[torch.Tensor]:
        return [next(calls)(sample.args[0]).detach()]  # type: ignore[attr-defined]

    monkeypatch.setattr("tests.kernels.support.agreement.opened", opened_twice)
    monkeypatch.setattr("tests.kernels.support.agreement._results", results)
    assert disagreement(path, torch.float64, "cpu") > 1.0
    assert SETTINGS.seed == 1
