"""The operators of ``examples/formulas``: right to second order, and as torch has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.spec.open import open_spec

SPECS = sorted((Path(__file__).parents[2] / "examples/formulas").glob("*.yaml"))


def test_there_are_specs_with_the_modeline() -> None:
    assert len(SPECS) >= 17
    for path in SPECS:
        first = path.read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../../specs/gradlint.schema.json"


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_gradients(path: Path) -> None:
    op, samples = open_spec(OpRef(path.name, "spec", str(path)), Settings())
    assert op.kind == "formula"
    assert op.function is not None
    assert op.reference is not None or op.intent.surrogate is not None
    for sample in samples:
        out = op.call(*sample.args)
        if op.reference is not None:
            torch.testing.assert_close(out, op.reference(*sample.args))
        single = sample.converted(torch.float32, "cpu")
        assert op.call(*single.args).dtype == torch.float32
        if op.intent.surrogate is None and sum(a.numel() for a in _tensors(sample.args)) < 200:
            assert torch.autograd.gradcheck(op.call, sample.args)
            assert torch.autograd.gradgradcheck(op.call, sample.args)


def _tensors(args: tuple[object, ...]) -> list[torch.Tensor]:
    return [arg for arg in args if isinstance(arg, torch.Tensor)]
