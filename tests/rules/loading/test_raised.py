"""GL003, GL004 and GL007: exceptions of forward, backward and the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import CATALOGUE, by_code

GL003, GL004, GL007 = by_code("GL003"), by_code("GL004"), by_code("GL007")

X = torch.tensor([0.7, -1.2, 2.0])


def op_of(
    forward: Callable[..., Any] = lambda ctx, x: x * 2,
    backward: Callable[..., Any] = lambda ctx, g: g * 2,
) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (Function,), methods)


def raising(error: BaseException) -> Callable[..., Any]:
    def method(*args: Any) -> Any:
        raise error

    return method


def test_forward_that_raises_is_one_finding(
    probed: Callable[..., Outcome], subject: Callable[..., Any]
) -> None:
    bound = subject(op_of(raising(ValueError("needs [an even] number"))), X)
    assert GL003 is not None
    assert GL003.probe is not None
    (finding,) = GL003.probe(bound).findings
    assert finding.message == "forward raised ValueError: needs [an even] number"
    assert finding.evidence["original"] == "needs [an even] number"
    assert finding.location is not None
    assert finding.location.file.endswith("test_raised.py")
    for rule in CATALOGUE:
        if rule.has_probe and rule.code[:3] in ("GL0", "GL1", "GL2", "GL3"):
            if rule.code == "GL003":
                continue
            assert rule.probe(bound).findings == [], rule.code


@pytest.mark.parametrize(
    ("text", "verdict", "severity"),
    [
        ("Torch not compiled with CUDA enabled", "inconclusive", "info"),
        ("a tensor has to be on the same device", "fail", "error"),
    ],
)
def test_a_backward_for_a_gpu_is_not_judged_without_one(
    probed: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    verdict: str,
    severity: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    outcome = probed(GL004, op_of(backward=raising(AssertionError(text))), X.requires_grad_())
    assert outcome.verdict == verdict
    assert [item.severity for item in outcome.findings] == [severity]
    assert ("GPU" in outcome.note) == (verdict == "inconclusive")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    outcome = probed(GL004, op_of(backward=raising(AssertionError(text))), X)
    assert outcome.verdict == "fail"


def test_explanation_stands_beside_the_original(probed: Callable[..., Outcome]) -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x, 2.0)
        return x

    (finding,) = probed(GL003, op_of(forward), X).findings
    assert finding.cause_text == "`ctx.save_for_backward` takes tensors (or `None`) only"
    assert finding.help.startswith("keep numbers, shapes and modules as attributes")
    text = "save_for_backward can only save variables, but argument 1 is of type float"
    assert finding.evidence["original"] == text


def test_line_that_raised_is_shown(
    probed: Callable[..., Outcome], load_module: Callable[..., ModuleType]
) -> None:
    module = load_module(
        "import torch\n"
        "\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return helper(x)\n"
        "\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        é = 'ä'; return g * missing_name\n"
        "\n"
        "def helper(x):\n"
        "    return torch.ones(2) @ x\n"
    )
    (finding,) = probed(GL003, module.Op, torch.ones(3, dtype=torch.float64)).findings
    assert finding.location is not None
    assert finding.location.line == 13
    assert len(finding.evidence["traceback"]) == 2
    assert finding.evidence["traceback"][-1].endswith("in helper: return torch.ones(2) @ x")

    module.helper = lambda x: x * 2
    (finding,) = probed(GL004, module.Op, torch.ones(3)).findings
    assert finding.message == "backward raised NameError: name 'missing_name' is not defined"
    assert finding.location is not None
    assert finding.excerpt is not None
    assert finding.location.line == 10
    text = dict(finding.excerpt.lines)[10]
    start, end = finding.location.column, finding.location.end_column
    assert end is not None
    assert "missing_name" in text[start - 1 : end - 1]


@pytest.mark.parametrize(
    ("backward", "slug_text"),
    [
        (raising(NotImplementedError("You must implement either the backward or vjp method")), ""),
        (raising(KeyError("x")), ""),
        (lambda ctx, g: ctx.saved_tensors[0] * g, ""),
    ],
)
def test_backward_that_raises_is_one_finding(
    probed: Callable[..., Outcome], backward: Callable[..., Any], slug_text: str
) -> None:
    outcome = probed(GL004, op_of(backward=backward), X)
    assert outcome.verdict == "fail"
    assert len(outcome.findings) == 1
    assert outcome.findings[0].message.startswith("backward raised ")
    assert probed(GL003, op_of(backward=backward), X).verdict == "pass"


def test_a_backward_that_is_not_implemented_and_says_so_is_information(
    probed: Callable[..., Outcome],
) -> None:
    class ForwardOnly(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            """There is none."""
            raise NotImplementedError("backward not implemented", ForwardOnly)

    outcome = probed(GL004, ForwardOnly, X)
    assert (outcome.verdict, outcome.note) == (
        "inconclusive",
        "backward is not implemented, and says so: there is no gradient to judge",
    )
    assert [item.grounds.refused for item in outcome.findings] == [True]


def test_a_backward_that_is_not_implemented_for_some_inputs_is_an_error(
    probed: Callable[..., Outcome],
) -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.positive = bool((x > 0).all())
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            if ctx.positive:
                return 2 * g
            raise NotImplementedError("negative numbers")

    class Unfinished(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            raise ValueError("not implemented")

    for op, given in ((Half, -X.abs() - 1), (Unfinished, X)):
        outcome = probed(GL004, op, given)
        assert outcome.verdict == "fail"
        assert [item.grounds.refused for item in outcome.findings] == [False]


def test_engine_errors_of_other_rules_are_left_to_them(probed: Callable[..., Outcome]) -> None:
    for backward, code in [
        (lambda ctx, g: (g, g), "GL101"),
        (lambda ctx, g: [g], "GL104"),
        (lambda ctx, g: g[:1], "GL201"),
        (lambda ctx, g: g.to("meta"), "GL204"),
        (lambda ctx, g: g * 1j, "GL203"),
    ]:
        outcome = probed(GL004, op_of(backward=backward), X)
        assert outcome.verdict == "skipped"
        assert code in outcome.note
        assert len(probed(by_code(code), op_of(backward=backward), X).findings) == 1


def test_a_user_error_with_the_engines_words_is_reported(probed: Callable[..., Outcome]) -> None:
    text = "function OpBackward returned an incorrect number of gradients (expected 1, got 2)"
    outcome = probed(GL004, op_of(backward=raising(RuntimeError(text))), X)
    assert len(outcome.findings) == 1


def test_saved_tensor_modified_in_place_is_seen(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x * 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (y,) = ctx.saved_tensors
            return g * y

    def op(x: Tensor) -> Tensor:
        y = Op.apply(x)
        y.add_(1)
        return y

    (finding,) = probed(GL004, op, X).findings
    assert "modified by an inplace operation" in finding.evidence["original"]
    assert finding.cause_text.startswith("a tensor that backward needs was changed in place")


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


@pytest.mark.parametrize(("rule", "method"), [(GL003, "forward"), (GL004, "backward")])
@pytest.mark.parametrize("error", [Hostile(), RecursionError(), ValueError("[red]x[/]\n\x1b[0m")])
def test_hostile_exceptions_are_reported(
    probed: Callable[..., Outcome], rule: Any, method: str, error: Exception
) -> None:
    outcome = probed(rule, op_of(**{method: raising(error)}), X)
    (finding,) = outcome.findings
    assert finding.message.startswith(f"{method} raised {type(error).__name__}")
    assert isinstance(finding.evidence["original"], str)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    ],
)
@pytest.mark.parametrize("method", ["forward", "backward"])
def test_out_of_memory_is_its_own_rule(
    probed: Callable[..., Outcome], error: Exception, method: str
) -> None:
    op = op_of(**{method: raising(error)})
    (finding,) = probed(GL007, op, X).findings
    assert finding.message == f"out of memory in {method}"
    assert probed(GL003, op, X).findings == []
    assert probed(GL004, op, X).findings == []


def test_ops_that_run_pass(probed: Callable[..., Outcome]) -> None:
    for rule in (GL003, GL004, GL007):
        assert probed(rule, op_of(), X).verdict == "pass"
        assert probed(rule, torch.sin, X).verdict == "pass"


def test_unsupported_derivative_is_explained(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        return torch.heaviside(x, x)

    outcome = probed(GL004, op, X)
    (finding,) = outcome.findings or probed(GL003, op, X).findings
    assert finding.cause_text.startswith("PyTorch has no derivative")


def test_the_call_is_shown_that_pytorch_refuses_after_forward(
    probed: Callable[..., Outcome], load_module: Callable[..., ModuleType]
) -> None:
    module = load_module(
        "import torch\n"
        "\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, model):\n"
        "        ctx.save_for_backward(x, model)\n"
        "        return x * model\n"
        "\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g, None\n"
    )
    (finding,) = probed(GL003, module.Op, X, 2.0).findings
    assert finding.location is not None
    assert finding.excerpt is not None
    assert (finding.location.line, finding.location.column) == (6, 34)
    assert finding.location.end_column == 39
    assert dict(finding.excerpt.lines)[6] == "        ctx.save_for_backward(x, model)"


#: One line of backward, and whether other inputs than those guessed could avoid its error.
LINES = {
    "return g @ ctx.saved_tensors[0]": True,
    "return g * ctx.saved_tensors[0][:, 5]": True,
    "a, b = x; return g * a * b": True,
    "assert x.shape[0] % 2 == 0; return g": True,
    "return g * (1 / int((x > 5).sum()))": True,
    "return torch.nn.Tanh()(g, x)": True,
    "return g * missing_name": False,
    "a, b = ctx.saved_tensors; return g": False,
    "saved = ctx.saved_tensors; a, b = saved; return g": False,
    "return g * ctx.scale": False,
    "return g.summ()": False,
    "return torch.summ(g)": False,
    "return g * None": False,
}


@pytest.mark.parametrize("origin", ["inferred", "--inputs"])
@pytest.mark.parametrize("line", LINES)
def test_a_guess_is_suspected_where_other_inputs_could_avoid_the_error(
    line: str, origin: str, load_module: Callable[..., ModuleType], subject: Callable[..., Any]
) -> None:
    module = load_module(
        "import torch\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        (x,) = ctx.saved_tensors\n"
        f"        {line}\n"
    )
    bound = subject(module.Op, torch.ones(3, 4))
    bound.sample = replace(bound.sample, origin=origin)
    assert GL004 is not None
    assert GL004.probe is not None
    (finding,) = as_loud_as_evidence(GL004.probe(bound)).findings
    suspected = LINES[line] and origin == "inferred"
    assert finding.severity == ("warning" if suspected else "error")
    assert finding.grounds.guessed == suspected
    assert ("the inputs were guessed" in finding.help) == (origin == "inferred")


#: An option that gradlint moved, what forward does and says of it, and how loud a raise there is.
OPTIONS = {
    "a window": ("stride=1", "x * stride", "", "warning"),
    "a name": ("mode='a'", "x * len(mode)", "", "warning"),
    "a number": ("k=1", "x * k", "", "info"),
    "a number that is documented": ("k=1", "x * k", "k: how often x is added.", "warning"),
    "a number that is compared with": ("k=1", "x * (3 if k == 2 else k)", "", "warning"),
    "a misspelt name there": ("k=1", "x * k", "", "error"),
}


@pytest.mark.parametrize("origin", ["inferred", "--inputs"])
@pytest.mark.parametrize("case", OPTIONS)
def test_a_raise_at_an_option_that_was_moved_is_as_loud_as_what_is_known_of_it(
    case: str, origin: str, load_module: Callable[..., ModuleType], subject: Callable[..., Any]
) -> None:
    parameter, value, documentation, severity = OPTIONS[case]
    name = parameter.partition("=")[0]
    misspelt = "missing_name" if severity == "error" else "g[:, 7]"
    module = load_module(
        "import torch\n"
        "class Op(torch.autograd.Function):\n"
        f'    """{documentation or "Adds."}"""\n'
        "    @staticmethod\n"
        f"    def forward(ctx, x, {parameter}):\n"
        f"        return {value}\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        f"        return {misspelt}, None\n"
    )
    bound = subject(module.Op, torch.ones(3, 4), "b" if name == "mode" else 2)
    bound.sample = replace(bound.sample, origin=origin, moved=(name,))
    assert GL004 is not None
    assert GL004.probe is not None
    (finding,) = as_loud_as_evidence(GL004.probe(bound)).findings
    assert finding.severity == severity


def test_an_explanation_of_another_line_is_not_given(
    load_module: Callable[..., ModuleType], probed: Callable[..., Outcome]
) -> None:
    module = load_module(
        "import torch\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return work(g)\n"
    )
    module.work = lambda g: torch.nn.Tanh().forward(g, g)
    (finding,) = probed(GL004, module.Op, torch.ones(3)).findings
    assert finding.cause_text == ""
    assert "apply" not in finding.help

    module.Op.backward = staticmethod(lambda ctx: None)
    (finding,) = probed(GL004, module.Op, torch.ones(3)).findings
    assert finding.cause_text.startswith("the arguments that were passed do not fit")

    def two(g: Tensor) -> Tensor:
        first, second = g
        return first * second

    module.work = two
    module.Op.backward = staticmethod(lambda ctx, g: module.work(g))
    (finding,) = probed(GL004, module.Op, torch.ones(3)).findings
    assert "saved" not in finding.cause_text + finding.help
    assert finding.cause_text.startswith("what is unpacked has another number of elements")


def test_a_function_for_transforms_may_have_no_backward(probed: Callable[..., Outcome]) -> None:
    forward = {"forward": staticmethod(lambda ctx, x: x * 2)}
    alone = type("Alone", (Function,), forward)
    mapped = type("Mapped", (Function,), {**forward, "vmap": staticmethod(lambda *args: None)})
    found = {}
    for op in (alone, mapped):
        (finding,) = as_loud_as_evidence(probed(GL004, op, X)).findings
        assert finding.cause_text == "this Function has no backward"
        found[op] = finding.severity
    assert found == {alone: "error", mapped: "info"}


@pytest.mark.parametrize(("held", "expected"), [("parts", "warning"), ("own", "error")])
def test_what_is_unpacked_may_be_an_argument(
    load_module: Callable[..., ModuleType], subject: Callable[..., Any], held: str, expected: str
) -> None:
    """An argument that was guessed, and is kept on ctx under its own name."""
    module = load_module(
        "import torch\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, parts):\n"
        f"        ctx.{held} = parts\n"
        "        return x * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        f"        first, second = ctx.{held}.pop()\n"
        "        return g * first, None\n"
    )
    bound = subject(module.Op, torch.ones(3), [torch.ones(3)])
    bound.sample = replace(bound.sample, origin="inferred")
    assert GL004 is not None
    assert GL004.probe is not None
    (finding,) = as_loud_as_evidence(GL004.probe(bound)).findings
    assert finding.severity == expected


class Sized(Function):
    """Forward does nothing with its second argument, backward reads it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.group.size, None


class SizedByDefault(Sized):
    """Near it: None is the author's own default."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any = None) -> Tensor:
        ctx.group = group
        return x * 1.0


@pytest.mark.parametrize(("op", "severity"), [(Sized, "warning"), (SizedByDefault, "error")])
def test_none_that_was_guessed_may_be_at_fault(
    probed: Callable[..., Outcome], subject: Callable[..., Any], op: Any, severity: str
) -> None:
    bound = subject(op, X.double().requires_grad_(), None)
    bound.sample = replace(bound.sample, origin="inferred")
    assert GL004 is not None
    assert GL004.probe is not None
    (finding,) = as_loud_as_evidence(GL004.probe(bound)).findings
    assert finding.severity == severity
    assert "'NoneType' object has no attribute 'size'" in finding.message
