"""Specs opened: the op, what it declares, and its samples."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gradlint.base.errors import SpecError
from gradlint.model.op import Op, OpRef
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.spec.open import open_spec
from gradlint.targets import source as sources
from gradlint.targets.load_error import LoadError

MODULE = """\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, factor=2.0, flag=False):
        ctx.factor = factor
        return input * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


class Other(Scale):
    pass


def plain(x, *, dim=-1):
    return x.softmax(dim)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "scale_ops.py").write_text(MODULE)
    return tmp_path


def opened(folder: Path, text: str, **settings: int) -> tuple[Op, list[Sample]]:
    (folder / "sub" / "spec.yaml").write_text(text)
    ref = OpRef("sub/spec.yaml", "spec", "sub/spec.yaml")
    return open_spec(ref, Settings(**settings))  # type: ignore[arg-type]


def problems(folder: Path, text: str) -> list[tuple[int | None, int | None, str]]:
    with pytest.raises(SpecError) as raised:
        opened(folder, text)
    return [(p.line, p.column, p.message) for p in raised.value.problems]


def test_an_op_beside_the_spec(folder: Path) -> None:
    op, (sample,) = opened(
        folder,
        "op: scale_ops.py:Scale\nname: my scale\ninputs: {input: {shape: [3]}, flag: true}\n"
        "reference: input * 2\ndtypes: [float32]\ndevices: [cuda]\norder: 1\n"
        "ignore: [{code: GL503, reason: so be it}]\n"
        "surrogate: {input: grad_output}\nstochastic: false",
    )
    assert (op.name, op.kind, op.target) == ("my scale", "function", "sub/spec.yaml")
    assert op.ignores == {"GL503": "so be it"}
    assert op.intent.surrogate == {"input": "grad_output"}
    assert op.intent.stochastic is False
    assert (op.dtypes, op.devices, op.order) == (("float32",), ("cuda",), 1)
    assert sample.args[1:] == (2.0, True)
    assert op.reference is not None
    assert torch.equal(op.call(*sample.args), op.reference(*sample.args))


def test_a_callable_takes_keywords(folder: Path) -> None:
    op, (sample,) = opened(folder, "op: scale_ops.py:plain\ninputs: {x: {shape: [3]}, dim: 0}")
    assert op.kind == "callable"
    assert sample.kwargs == {"dim": 0}


def test_without_inputs_there_are_no_samples(folder: Path) -> None:
    op, samples = opened(folder, "op: scale_ops.py:Scale")
    assert (op.name, samples) == ("Scale", [])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("op: scale_ops.py:Skale", 1, 5, "Skale"),
        ("name: x\nop: nosuch_module_here:Scale", 2, 5, "nosuch_module_here"),
        ("op: scale_ops.py", 1, 5, "names 2 operators, but a spec describes one"),
        ("op: sub/spec.yaml", 1, 5, "names 1 operators"),
        (
            "op: scale_ops.py:Scale\nextension: {sources: [a.cpp]}",
            *(2, 23, "there is no file `a.cpp`"),
        ),
        (
            "op: scale_ops.py:Scale\ninputs: {inptu: {shape: [3]}}",
            *(2, 1, "the op also needs `input`"),
        ),
    ],
)
def test_mistakes(folder: Path, text: str, line: int, column: int, message: str) -> None:
    found = problems(folder, text)
    assert found[0][:2] == (line, column)
    assert message in found[0][2]


def test_a_module_that_raises_is_no_mistake_of_the_spec(folder: Path) -> None:
    from gradlint.targets.load_error import LoadError

    (folder / "sub" / "raises.py").write_text("class Op: pass\nraise ValueError('no')")
    with pytest.raises(LoadError):
        opened(folder, "op: raises.py:Op")


FORMULA = """\
forward: "x * weight"
backward:
  x: "grad_output * weight"
  weight: >-
    (grad_output
     * x).sum(0)
dims: {N: [2, 5]}
inputs: {x: {shape: [N, 3]}, weight: {shape: [3]}, flag: true}
"""


def test_a_formula(folder: Path) -> None:
    op, samples = opened(folder, FORMULA)
    assert (op.name, op.kind, op.target) == ("spec", "formula", "sub/spec.yaml")
    assert [sample.label for sample in samples] == ["N=2", "N=5"]
    assert op.function is not None
    assert op.signature is not None
    assert list(op.signature.parameters) == ["x", "weight", "flag"]
    for sample in samples:
        assert torch.autograd.gradgradcheck(op.call, sample.args)


def test_places_of_a_formula(folder: Path) -> None:
    op, _ = opened(folder, FORMULA)
    location = op.location
    assert location is not None
    assert (str(location), location.end_line, location.end_column) == ("sub/spec.yaml:1:11", 1, 21)
    assert op.function is not None
    place, excerpt, _ = sources.returned_gradient(op.function, 1, None, "returned for `weight`")
    assert place is not None
    assert (place.line, place.column, place.end_line, place.end_column) == (5, 5, 6, 17)
    assert excerpt is not None
    assert excerpt.lines == ((5, "    (grad_output"), (6, "     * x).sum(0)"))
    assert excerpt.label == "returned for `weight`"
    missing, _, _ = sources.returned_gradient(op.function, 2)
    assert missing is not None
    assert missing.line == 3
    definition, shown, _ = sources.definition(op)
    assert definition == location
    assert shown is not None


def test_the_seed_of_the_spec_wins(folder: Path) -> None:
    def values(text: str, seed: int) -> torch.Tensor:
        value: torch.Tensor = opened(folder, text, seed=seed)[1][0].args[0]
        return value.detach()

    assert not torch.equal(values(FORMULA, 1), values(FORMULA, 2))
    assert torch.equal(values(FORMULA + "seed: 7", 1), values(FORMULA + "seed: 7", 2))


NETS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self, width, *, dtype=torch.float64, sizes=()):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width, dtype=dtype))
        self.sizes = sizes

    def forward(self, x):
        return x * self.weight
"""


def test_a_module_is_made_as_the_spec_says(folder: Path) -> None:
    (folder / "sub" / "nets.py").write_text(NETS)
    op, samples = opened(
        folder,
        "op: nets.py:Net\ndims: {N: [3, 4]}\ninputs: {x: {shape: [N, 5]}}\n"
        "constructor: {width: 5, dtype: {expression: torch.float32},\n"
        "  sizes: {tuple: [1, {expression: N}]}}",
    )
    assert op.module is not None
    assert op.constructor == {"width": 5, "dtype": torch.float32, "sizes": (1, 3)}
    (weight,) = op.module.parameters()
    assert (list(weight.shape), weight.dtype) == ([5], torch.float32)
    assert not [note for note in op.notes if "guess" in note]
    assert len(samples) == 2


def test_a_constructor_that_does_not_fit(folder: Path) -> None:
    (folder / "sub" / "nets.py").write_text(NETS)
    with pytest.raises(LoadError, match=r"constructing `Net\(depth=3\)` raised TypeError"):
        opened(folder, "op: nets.py:Net\ninputs: {x: {shape: [5]}}\nconstructor: {depth: 3}")
    text = "op: scale_ops.py:Scale\ninputs: {input: {shape: [5]}}\nconstructor: {depth: 3}"
    ((line, _, message),) = problems(folder, text)
    assert (line, message) == (
        1,
        "`Scale` is no class of modules, and takes no arguments of a constructor",
    )
