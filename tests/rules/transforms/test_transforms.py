"""What the rules on transforms let pass, leave out, and say."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome, Rule
from gradlint.rules.catalogue import by_code


def rule(code: str) -> Rule:
    found = by_code(code)
    assert found is not None
    return found


VMAP, FUNC, COMPILE, EXPORT, LIKES = map(rule, ("GL901", "GL902", "GL903", "GL905", "GL906"))
ALL = (VMAP, FUNC, COMPILE, EXPORT, LIKES)
Probed = Callable[..., Outcome]


class Cube(Function):
    """x³ in the style that torch.func wants."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


class OldCube(Function):
    """x³ with ctx in forward: torch.func refuses it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


class DoubledInPlace(Function):
    """x ← 2x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * 2


def point(*shape: int) -> Tensor:
    """Random values, the same ones every time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.mark.parametrize("checked", ALL, ids=lambda rule: rule.code)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_right_function_passes(checked: Rule, dtype: torch.dtype, probed: Probed) -> None:
    x = point(3, 4).to(dtype).requires_grad_()
    outcome = probed(checked, Cube, x)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


@pytest.mark.parametrize("checked", ALL, ids=lambda rule: rule.code)
def test_wrong_gradient_is_not_told_again(checked: Rule, probed: Probed) -> None:
    class Wrong(Cube):
        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x**2

    assert probed(checked, Wrong, point(3, 4)).findings == []


@pytest.mark.parametrize("checked", ALL, ids=lambda rule: rule.code)
def test_op_that_raises_is_skipped(checked: Rule, probed: Probed) -> None:
    class Raises(OldCube):
        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            raise ValueError

    outcome = probed(checked, Raises, point(3, 4))
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    assert outcome.note == "backward raised: see GL004"


@pytest.mark.parametrize("checked", ALL, ids=lambda rule: rule.code)
@pytest.mark.parametrize(
    "op",
    [
        lambda x: torch.nn.functional.dropout(x, 0.5),
        lambda x: x.sort().values,
        lambda x: x * float(x.detach().max()),
        lambda x: (x.numpy(force=True).sum() * x).sum(),
        lambda x: [x.sin(), {"a": x.argmax(), "b": x.cos()}],
        lambda x: x if x.sum() > 0 else x * x,
        lambda x: torch.linalg.svdvals(x),
    ],
    ids=["random", "sort", "item", "numpy", "nested", "branch", "svd"],
)
def test_right_callables_are_silent(checked: Rule, op: Any, probed: Probed) -> None:
    outcome = probed(checked, op, point(3, 4))
    assert [f.message for f in outcome.findings if f.severity != "info"] == []


@pytest.mark.parametrize("checked", ALL, ids=lambda rule: rule.code)
def test_right_modules_are_silent(checked: Rule, probed: Probed) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.LayerNorm(3))
    before = [name for name, _ in module.named_parameters()]
    assert probed(checked, module, point(2, 4)).findings == []
    assert [name for name, _ in module.named_parameters()] == before


@pytest.mark.parametrize("checked", [COMPILE, EXPORT, LIKES], ids=lambda rule: rule.code)
def test_in_place_ops_are_silent(checked: Rule, probed: Probed) -> None:
    assert probed(checked, DoubledInPlace, point(3, 4)).findings == []


def test_unsupported_is_skipped_and_said(probed: Probed) -> None:
    outcome = probed(VMAP, OldCube, point(3))
    assert outcome.verdict == "skipped"
    assert outcome.note == "`OldCube`: neither generate_vmap_rule nor a vmap method"
    outcome = probed(FUNC, OldCube, point(3))
    assert outcome.verdict == "skipped"
    assert outcome.note == "`OldCube`: torch.func needs a separate setup_context"


def test_announced_vmap_that_refuses_is_told(probed: Probed) -> None:
    class Refuses(Cube):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x * x.sum().item()

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * x.sum() + (grad_output * x).sum()

    outcome = as_loud_as_evidence(probed(VMAP, Refuses, point(3)))
    assert outcome.verdict == "pass"
    (finding,) = outcome.findings
    assert (finding.severity, finding.cause) == ("info", "refused")


def test_vmap_method_that_raises_is_an_error(probed: Probed) -> None:
    class Raises(Cube):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
            return Raises.apply(x.movedim(in_dims[1], 0)), 0

    outcome = probed(VMAP, Raises, point(3))
    assert outcome.verdict == "fail"
    (finding,) = outcome.findings
    assert (finding.severity, finding.cause) == ("error", "raises")
    assert "IndexError" in finding.message


def test_second_order_is_left_out_where_refused(probed: Probed) -> None:
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x**2

    outcome = probed(FUNC, Once, point(3))
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert outcome.note == "no second derivative"


def test_op_of_many_operators_is_compiled_where_asked_for(probed: Probed) -> None:
    def many(x: Tensor) -> Tensor:
        for _ in range(60):
            x = (x * 1.01).sin()
        return x

    for checked in (COMPILE, EXPORT):
        outcome = probed(checked, many, point(3))
        assert outcome.verdict == "skipped"
        assert outcome.note.endswith(
            f"operators, which take long to trace: --select {checked.code} runs it"
        )
        assert probed(checked, many, point(3), select=(checked.code,)).verdict == "pass"


def test_compiling_leaves_nothing_behind(probed: Probed) -> None:
    before = logging.root.manager.disable
    torch.compile(Cube.apply, backend="eager")(torch.ones(3))
    logged = len(torch._dynamo.utils.get_compilation_metrics())
    assert logged > 0
    assert probed(COMPILE, Cube, point(3, 4)).verdict == "pass"
    assert len(torch._dynamo.utils.get_compilation_metrics()) == logged
    torch.compile(Cube.apply, backend="eager")(torch.ones(3))
    assert len(torch._dynamo.utils.get_compilation_metrics()) > logged
    assert logging.root.manager.disable == before
    assert not torch._dynamo.compiled_autograd.compiled_autograd_enabled
    assert gc.isenabled()


@pytest.mark.parametrize("breaks", [True, False])
def test_a_backward_is_traced_once_at_least(probed: Probed, breaks: bool) -> None:
    """By Dynamo with forward, or where that is not traced, on its way through compiled autograd."""

    class Op(Cube):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            if breaks:
                torch._dynamo.graph_break()
            return x**3

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * (6 if torch.compiler.is_compiling() else 3) * x**2

    (finding,) = probed(COMPILE, Op, point(3)).findings
    assert finding.message.endswith("compiled autograd" if breaks else "torch.compile")


def test_missing_fake_kernel_is_no_error(probed: Probed) -> None:
    @torch.library.custom_op("gradlint_transforms::no_fake", mutates_args=())
    def no_fake(x: Tensor) -> Tensor:
        return x.sin()

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * ctx.saved_tensors[0].cos()

    no_fake.register_autograd(backward, setup_context=setup_context)
    outcome = as_loud_as_evidence(probed(COMPILE, no_fake, point(3)))
    assert {finding.severity for finding in outcome.findings} <= {"info"}


def test_type_lost_is_told(probed: Probed) -> None:
    def plain(x: Tensor) -> Tensor:
        return x.sin().as_subclass(torch.Tensor) if isinstance(x, torch.Tensor) else x.sin()

    outcome = probed(LIKES, plain, point(3))
    assert outcome.verdict == "pass"
    (finding,) = outcome.findings
    assert (finding.severity, finding.cause) == ("info", "type-lost")


def test_refused_tensor_likes_are_no_fault(probed: Probed) -> None:
    def strict(x: Tensor) -> Tensor:
        if type(x) is not torch.Tensor:
            raise TypeError("plain tensors only")
        return x.sin()

    outcome = probed(LIKES, strict, point(3))
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert "refused: TypeError: plain tensors only" in outcome.note


class CubeByLevel(Cube):
    """x³, with half the gradient inside of a functorch transform."""

    @staticmethod
    def forward(x: Tensor, share: float) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.share = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return ctx.share * grad_output * 3 * x**2, None


def test_random_numbers_may_be_others_under_torch_func(probed: Probed) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    outcome = probed(FUNC, layer, x)
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    assert outcome.note == "forward draws random numbers: torch.func draws different ones"


def test_gradients_of_random_ops_are_held_to_plain_ones(probed: Probed) -> None:
    def right(x: Tensor) -> Tensor:
        return CubeByLevel.apply(x * torch.rand_like(x), 1.0)

    def wrong(x: Tensor) -> Tensor:
        inside = torch._C._functorch.peek_interpreter_stack() is not None
        return CubeByLevel.apply(x * torch.rand_like(x), 0.5 if inside else 1.0)

    x = torch.randn(5, 4, dtype=torch.float64)
    assert probed(FUNC, right, x).verdict == "pass"
    outcome = probed(FUNC, wrong, x)
    assert outcome.verdict == "fail"
    assert [finding.input for finding in outcome.findings] == ["x"]


def test_what_rounding_leaves_of_zero_is_no_difference(probed: Probed) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        op = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), torch.nn.InstanceNorm1d(4, affine=True))
        x = torch.randn(2, 3, 8, dtype=torch.float64)
        for transform in (VMAP, FUNC):
            assert probed(transform, op, x).findings == []
