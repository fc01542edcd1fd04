"""Every explained error is provoked with PyTorch itself; texts that need a GPU are quoted."""

from __future__ import annotations

import copy
import importlib
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.autograd.function import once_differentiable

from gradlint.base.text import error_line, error_text
from gradlint.diagnosis._engine_texts import KNOWN
from gradlint.diagnosis.engine_errors import BESIDE_THE_INPUTS, REJECTIONS, explain


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.ones(*(shape or (3,)), dtype=dtype, requires_grad=True)


def function(
    backward: Callable[..., Any] | None = None,
    forward: Callable[..., Any] = lambda ctx, *args: args[0] * 2,
    **more: Any,
) -> Any:
    """A Function of the given methods."""
    methods: dict[str, Any] = {"forward": staticmethod(forward), **more}
    if backward is not None:
        methods["backward"] = staticmethod(backward)
    return type("Op", (Function,), methods)


def same(ctx: Any, grad: Tensor) -> Tensor:
    return grad


def run(op: Any, *args: Any) -> None:
    op.apply(*(args or (leaf(),))).sum().backward()


def saves(value: Callable[[Any], Any]) -> Callable[..., Any]:
    """A forward that saves ``value(x)``."""

    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(value(x))
        return x * 2

    return forward


def reads(ctx: Any, grad: Tensor) -> Tensor:
    return grad * ctx.saved_tensors[0]


class OptionalImportError(ImportError):
    """What a package raises for one that it can do without."""


def raise_(error: BaseException) -> None:
    raise error


def backward_twice() -> None:
    y = (leaf() ** 2).sum()
    y.backward()
    y.backward()


def saved_context() -> None:
    kept = []

    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        kept.append(ctx)
        return x * 2

    run(function(same, forward))
    _ = kept[0].saved_tensors


def modified_output() -> None:
    y = leaf().exp()
    y.mul_(2)
    y.sum().backward()


def modified_saved_of_function() -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x * 2
        ctx.save_for_backward(y)
        return y

    y = function(reads, forward).apply(leaf())
    y.add_(1)
    y.sum().backward()


def accessed_twice() -> None:
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    run(function(backward, saves(lambda x: x), clear_saved_tensors_on_access=True))


def inference_tensor() -> None:
    with torch.inference_mode():
        made = torch.ones(3)
    (made * leaf()).sum().backward()


def hooks_and_func() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        torch.func.grad(lambda x: (x**2).sum())(torch.ones(3))


def unpacks_two() -> None:
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad * x * y

    run(function(backward, saves(lambda x: x)))


def reentrant_checkpoint() -> None:
    from torch.utils.checkpoint import checkpoint

    x = leaf()
    y = checkpoint(torch.exp, x, use_reentrant=True)
    torch.autograd.grad(y.sum(), x)


def unused() -> None:
    x, z = leaf(), leaf()
    torch.autograd.grad((x * 2).sum(), [x, z])


def twice_once_differentiable() -> None:
    op = function(once_differentiable(reads), saves(lambda x: x))
    x = leaf()
    (grad,) = torch.autograd.grad(op.apply(x), x, leaf(), create_graph=True)
    grad.sum().backward()


def unregistered() -> None:
    @torch.library.custom_op("gradlint_test::no_formula", mutates_args=())
    def no_formula(x: Tensor) -> Tensor:
        return x * 2

    no_formula(leaf()).sum().backward()


def legacy() -> None:
    class Old(Function):
        def forward(self, x: Tensor) -> Tensor:
            return x

    Old()(leaf())


def direct_forward() -> None:
    function(same, saves(lambda x: x)).forward(None, leaf())


def context_in_both() -> None:
    op = function(
        same,
        lambda ctx, x: ctx.save_for_backward(x),
        setup_context=staticmethod(lambda ctx, inputs, output: None),
    )
    op.apply(leaf(), leaf())


def setup_and_context() -> None:
    setup = staticmethod(lambda ctx, inputs, output: None)
    function(same, lambda ctx, x: x * 2, setup_context=setup).apply(leaf())


def no_forward() -> None:
    class Op(Function):
        pass

    Op.apply(leaf())


def backward_and_vjp() -> None:
    run(function(same, vjp=staticmethod(same)))


def no_jvp() -> None:
    with forward_ad.dual_level():
        function(same).apply(forward_ad.make_dual(torch.ones(3), torch.ones(3)))


def with_setup(**more: Any) -> Any:
    setup = staticmethod(lambda ctx, inputs, output: None)
    return function(same, lambda x: x * 2, setup_context=setup, **more)


def no_vmap() -> None:
    torch.vmap(with_setup().apply)(torch.ones(3, 2))


def two_vmaps() -> None:
    vmap = staticmethod(lambda info, in_dims, x: (x, 0))
    torch.vmap(with_setup(generate_vmap_rule=True, vmap=vmap).apply)(torch.ones(3, 2))


def no_setup() -> None:
    torch.func.grad(lambda x: function(same).apply(x).sum())(torch.ones(3))


def dirty(mark: Callable[[Any, Tensor], Any], back: Callable[[Tensor], Any]) -> Any:
    def forward(ctx: Any, x: Tensor) -> Any:
        x.add_(1)
        mark(ctx, x)
        return back(x)

    return function(lambda ctx, *grads: grads[0], forward)


def marks_number() -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_non_differentiable(3)
        return x * 2

    run(function(same, forward))


def dirty_view() -> None:
    op = dirty(lambda ctx, x: ctx.mark_dirty(x), lambda x: (x, x * 2))
    op.apply((leaf() * 1)[:2])


def view_output() -> None:
    function(same, lambda ctx, x: x.view_as(x)).apply(leaf()).add_(1)


def no_grad_view() -> None:
    x = leaf() * 1
    with torch.no_grad():
        view = x[0:2]
    view.add_(leaf(2))


def unmaterialised() -> None:
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    op = function(lambda ctx, g, h: g * 2 + h * 3, forward)
    op.apply(leaf())[0].sum().backward()


def anomaly() -> None:
    with torch.autograd.set_detect_anomaly(True):
        leaf().mul(0).log().mul(0).sum().backward()


SINGLE, DOUBLE = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64)
INTEGERS = torch.ones(3, dtype=torch.int64)

PROVOKED: list[tuple[str, Callable[[], Any]]] = [
    ("wrong-number-of-gradients", lambda: run(function(same), leaf(), 2)),
    ("wrong-number-of-gradients", lambda: run(function(lambda ctx, g: (g, g)))),
    ("gradient-for-non-tensor", lambda: run(function(lambda ctx, g: (g, g)), leaf(), 2)),
    ("gradient-not-a-tensor", lambda: run(function(lambda ctx, g: 1.0))),
    ("gradient-not-a-tensor", lambda: run(function(lambda ctx, g: [g]))),
    ("invalid-gradient-shape", lambda: run(function(lambda ctx, g: g[:2]))),
    ("invalid-gradient-device", lambda: run(function(lambda ctx, g: g.to("meta")))),
    ("invalid-gradient-dtype", lambda: run(function(lambda ctx, g: g * 1j))),
    ("nan-in-backward", anomaly),
    ("backward-twice", backward_twice),
    ("backward-twice", saved_context),
    ("saved-tensor-accessed-twice", accessed_twice),
    ("saved-tensor-modified", modified_output),
    ("saved-tensor-modified", modified_saved_of_function),
    ("save-for-backward-non-tensor", lambda: run(function(same, saves(lambda x: 2)))),
    ("save-for-backward-non-tensor", lambda: run(function(same, saves(lambda x: [x])))),
    (
        "save-for-forward-non-tensor",
        lambda: run(function(same, lambda ctx, x: ctx.save_for_forward(2))),
    ),
    ("inference-tensor", inference_tensor),
    ("saved-tensor-hooks", hooks_and_func),
    ("unpack-saved-tensors", unpacks_two),
    ("missing-context-attribute", lambda: run(function(lambda ctx, g: g * ctx.scale))),
    ("checkpoint-differs", reentrant_checkpoint),
    ("differentiated-tensor-unused", unused),
    (
        "differentiated-tensor-needs-no-gradient",
        lambda: torch.autograd.grad(leaf().sum(), torch.ones(3)),
    ),
    ("once-differentiable", twice_once_differentiable),
    ("no-graph", lambda: torch.ones(3).sum().backward()),
    ("no-autograd-formula", unregistered),
    (
        "derivative-not-implemented",
        lambda: torch.heaviside(leaf(), leaf()).sum().backward(),
    ),
    ("non-scalar-backward", lambda: leaf().mul(2).backward()),
    ("grad-output-shape", lambda: torch.autograd.grad(leaf() * 2, leaf(), torch.ones(4))),
    ("grad-on-integer-tensor", lambda: INTEGERS.clone().requires_grad_()),
    ("grad-on-integer-tensor", lambda: torch.ones(3, dtype=torch.int64, requires_grad=True)),
    ("not-a-leaf", lambda: (leaf() * 2).requires_grad_(False)),
    ("out-argument", lambda: torch.add(leaf(), leaf(), out=torch.empty(3).double())),
    ("numpy-of-tracked-tensor", lambda: leaf().numpy()),
    ("deepcopy-of-tracked-tensor", lambda: copy.deepcopy(leaf() * 2)),
    ("legacy-function", legacy),
    ("forward-called-directly", direct_forward),
    ("forward-called-directly", context_in_both),
    ("no-backward", lambda: run(function())),
    ("no-forward", no_forward),
    ("backward-and-vjp", backward_and_vjp),
    ("no-jvp", no_jvp),
    ("vmap-ambiguous", two_vmaps),
    ("no-vmap", no_vmap),
    ("no-setup-context", no_setup),
    ("forward-called-directly", lambda: function(same, saves(same)).forward(leaf())),
    ("context-used-as-tensor", lambda: run(function(same, lambda x, y=2: x * y))),
    ("context-used-as-tensor", lambda: run(function(same, lambda x, y=2: torch.exp(x)))),
    ("context-used-as-tensor", lambda: run(function(same, lambda x, y=2: -x))),
    ("context-parameter-mismatch", setup_and_context),
    ("context-parameter-mismatch", lambda: run(function(same, lambda x: x * 2))),
    ("context-parameter-mismatch", lambda: run(function(lambda ctx: ctx))),
    (
        "mark-dirty-not-returned",
        lambda: dirty(lambda ctx, x: ctx.mark_dirty(x), lambda x: x * 2).apply(leaf() * 1),
    ),
    (
        "mark-dirty-non-tensor",
        lambda: dirty(lambda ctx, x: ctx.mark_dirty([x]), lambda x: x).apply(leaf() * 1),
    ),
    ("mark-non-differentiable-non-tensor", marks_number),
    ("dirty-view", dirty_view),
    ("leaf-modified-in-place", lambda: leaf().add_(1)),
    ("leaf-modified-in-place", lambda: leaf()[0:2].add_(1)),
    (
        "leaf-modified-in-place",
        lambda: dirty(lambda ctx, x: ctx.mark_dirty(x), lambda x: x).apply(leaf()),
    ),
    ("function-view-modified", view_output),
    ("function-view-modified", lambda: (leaf() * 1).unbind(0)[0].add_(1)),
    ("no-grad-view-modified", no_grad_view),
    ("overlapping-memory", lambda: torch.ones(1).expand(3).mul_(2)),
    ("device-mismatch", lambda: torch.ones(3) + torch.ones(3, device="meta")),
    ("out-of-memory", lambda: torch.empty(1 << 50)),
    ("out-of-memory", lambda: torch.empty([1 << 20] * 4)),
    (
        "no-backend",
        lambda: torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (3,)).view(3),
    ),
    ("operator-not-registered", lambda: torch.ops.gradlint_test.never_heard_of),
    ("dtype-not-implemented", lambda: torch.softmax(INTEGERS, 0)),
    ("dtype-not-implemented", lambda: torch.linalg.inv(SINGLE.half())),
    ("dtype-not-implemented", lambda: torch.ones(3, dtype=torch.complex64).clamp(0)),
    ("dtype-mismatch", lambda: SINGLE @ DOUBLE),
    ("dtype-mismatch", lambda: torch.bmm(SINGLE[None], DOUBLE[None])),
    ("dtype-mismatch", lambda: torch.addmm(SINGLE, SINGLE, DOUBLE)),
    ("dtype-mismatch", lambda: torch.dot(SINGLE[0], DOUBLE[0])),
    ("dtype-mismatch", lambda: torch.lerp(SINGLE, DOUBLE, 0.5)),
    ("dtype-mismatch", lambda: torch.nn.functional.layer_norm(DOUBLE, (2,), SINGLE[0])),
    ("dtype-mismatch", lambda: SINGLE.scatter(0, torch.tensor([[0]]), DOUBLE)),
    ("index-dtype", lambda: torch.ones(3)[torch.ones(2)]),
    ("index-dtype", lambda: torch.ones(3).gather(0, torch.tensor([0.0]))),
    ("index-dtype", lambda: torch.nn.functional.nll_loss(SINGLE, torch.ones(2))),
    ("index-dtype", lambda: torch.nn.functional.embedding(torch.ones(3), torch.ones(3, 2))),
    ("in-place-dtype", lambda: INTEGERS.clone().add_(1.5)),
    ("view-of-non-contiguous", lambda: torch.ones(3, 4).t().view(12)),
    ("shape-mismatch", lambda: torch.ones(3) + torch.ones(4)),
    ("shape-mismatch", lambda: torch.ones(2, 3) @ torch.ones(2, 3)),
    ("shape-mismatch", lambda: torch.ones(3, 4).view(5)),
    ("shape-mismatch", lambda: torch.cat([torch.ones(2, 2), torch.ones(2, 3)])),
    ("index-out-of-range", lambda: torch.ones(3)[7]),
    ("index-out-of-range", lambda: torch.ones(3).sum(4)),
    ("none-in-arithmetic", unmaterialised),
    ("file-not-opened", lambda: open("no-such-folder/weights.txt")),  # noqa: SIM115
    ("file-not-opened", lambda: torch.load("no-such-weights.pt")),
    ("server-not-reached", lambda: raise_(ConnectionRefusedError(111, "Connection refused"))),
    ("server-not-reached", lambda: raise_(urllib.error.URLError("Name or service not known"))),
    ("server-not-reached", lambda: raise_(OSError(101, "Network is unreachable"))),
    ("module-not-installed", lambda: importlib.import_module("no_such_module")),
    ("module-not-installed", lambda: raise_(OptionalImportError("import lib._C, see the manual"))),
    ("module-not-installed", lambda: raise_(RuntimeError("needs lib (No module named 'lib._C')"))),
    ("module-not-installed", lambda: raise_(RuntimeError("Please `pip install lib[extra]`"))),
]

#: Texts that can't be provoked without a GPU, as PyTorch prints them.
QUOTED = [
    (
        "device-mismatch",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
        "and cpu!",
    ),
    ("cuda-not-available", "Torch not compiled with CUDA enabled"),
    (
        "cuda-not-available",
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    ),
    ("triton-without-gpu", "0 active drivers ([]). There should only be one."),
    (
        "triton-without-gpu",
        "Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)",
    ),
    ("cuda-tensors-only", "x must be a CUDA tensor"),
    ("cuda-tensors-only", "weight is not on a GPU"),
    ("cuda-tensors-only", "this kernel only supports CUDA"),
    ("cuda-error", "CUDA error: an illegal memory access was encountered"),
    ("out-of-memory", "CUDA out of memory. Tried to allocate 20.00 GiB."),
    ("view-of-non-contiguous", "input must be contiguous"),
    (
        "differentiated-tensor-unused",
        "One of the differentiated Tensors appears to not have been used in the graph. Set "
        "allow_unused=True if this is the desired behavior.",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("slug", "provoke"), PROVOKED, ids=[f"{i}-{slug}" for i, (slug, _) in enumerate(PROVOKED)]
)
def test_provoked_error_is_explained(slug: str, provoke: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (types differ by case)
        provoke()
    explanation = explain(caught.value)
    assert explanation is not None, str(caught.value)
    assert explanation.slug == slug, explanation.text
    assert explanation.text == str(caught.value)
    assert explanation.meaning
    assert explanation.fix


@pytest.mark.parametrize(("slug", "text"), QUOTED)
def test_quoted_error_is_explained(slug: str, text: str) -> None:
    explanation = explain(RuntimeError(text))
    assert explanation is not None
    assert explanation.slug == slug


@pytest.mark.parametrize(
    "error",
    [
        ValueError("must be one of mean, sum"),
        RuntimeError("expected a tensor on the same device"),
        OSError(28, "No space left on device"),
        RuntimeError("FileNotFoundError is what open raises"),
        KeyError("No module named 'attention' in this model"),
        ValueError("ImportError is raised where it is not there"),
        ValueError("cuda_graphs must be a bool"),
    ],
)
def test_what_the_arguments_may_cause_is_not_laid_to_the_surroundings(error: Exception) -> None:
    found = explain(error)
    assert found is None or found.slug not in BESIDE_THE_INPUTS


def test_every_slug_is_provoked_or_quoted() -> None:
    shown = {slug for slug, _ in PROVOKED} | {slug for slug, _ in QUOTED}
    assert {entry[0] for entry in KNOWN} == shown
    assert set(REJECTIONS) <= shown


@pytest.mark.parametrize(
    "error",
    [
        ValueError("the number of heads must divide 12"),
        KeyError("weight"),
        RuntimeError(""),
        ZeroDivisionError("division by zero"),
        AssertionError(),
    ],
)
def test_other_errors_are_not_explained(error: Exception) -> None:
    assert explain(error) is None


def test_an_error_whose_text_raises_is_safe() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise KeyError("no text")

    assert explain(Hostile()) is None
    assert error_text(Hostile()) == "<Hostile, whose __str__ raises KeyError>"
    assert error_line(Hostile()) == "Hostile: <Hostile, whose __str__ raises KeyError>"


def test_error_line_is_one_line_of_bounded_length() -> None:
    assert error_line(ValueError("first\nsecond")) == "ValueError: first"
    assert error_line(ValueError()) == "ValueError"
    line = error_line(ValueError("x" * 500))
    assert len(line) == 200
    assert line.endswith("…")
