"""Samples from ``--inputs`` and ``sample_inputs``."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.base.errors import InputsError
from gradlint.inputs._given import from_option
from gradlint.inputs.samples import samples_for
from gradlint.inputs.stand_ins import with_owners
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Product(Function):
    @staticmethod
    def forward(ctx, x, y, dim=0):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x, None


OP = from_object(Product)


def given(text: str, op=OP):
    return samples_for(op, Settings(inputs=text, seed=11))


def written(tmp_path, body: str) -> str:
    path = tmp_path / "my_inputs.py"
    path.write_text("import torch\n" + textwrap.dedent(body))
    return str(path)


def test_expression():
    (sample,) = given("randn(3, 4), randn(3, 4), dim=-1")
    assert sample.origin == "--inputs"
    *tensors, dim = sample.args
    assert [tuple(t.shape) for t in tensors] == [(3, 4), (3, 4)]
    assert all(t.dtype == torch.float64 and t.requires_grad for t in tensors)
    assert (dim, sample.kwargs) == (-1, {})
    (again,) = given("randn(3, 4), randn(3, 4), dim=-1")
    assert torch.equal(sample.args[0], again.args[0])


@pytest.mark.parametrize("separator", [":", "::"])
def test_function_in_a_file(tmp_path, separator):
    path = written(tmp_path, "def two():\n    return torch.randn(2), torch.randn(2)\n")
    (sample,) = given(f"{path}{separator}two")
    assert sample.label == "--inputs"
    assert sample.args[0].dtype == torch.float64


def test_several_samples(tmp_path):
    path = written(
        tmp_path,
        """
        def listed():
            return [(torch.randn(2), torch.randn(2)), (torch.randn(3), torch.randn(3), 0)]

        def named():
            return {"small": (torch.randn(2), torch.randn(2)), "x": (torch.ones(1), torch.ones(1))}
        """,
    )
    assert [s.label for s in given(f"{path}:listed")] == ["--inputs[0]", "--inputs[1]"]
    assert [s.label for s in given(f"{path}:named")] == ["small", "x"]


def test_flags_are_respected_when_any_is_set(tmp_path):
    path = written(
        tmp_path,
        "def some():\n    return torch.randn(2, requires_grad=True), torch.randn(2)\n",
    )
    (sample,) = given(f"{path}:some")
    assert [t.requires_grad for t in sample.args] == [True, False]


def test_derived_tensors_become_leaves(tmp_path):
    path = written(
        tmp_path,
        "def some():\n    x = torch.ones(2, requires_grad=True)\n    return x * 2, torch.ones(2)\n",
    )
    assert given(f"{path}:some")[0].args[0].is_leaf


def test_float32_is_kept_where_the_op_takes_nothing_else(tmp_path):
    def single(x):
        assert x.dtype == torch.float32
        return x * 2

    path = written(tmp_path, "def one():\n    return torch.randn(3)\n")
    (sample,) = given(f"{path}:one", from_object(single))
    assert sample.args[0].dtype == torch.float32
    assert sample.notes == ["in float32: the op refused float64"]


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("return None", "it gave None", "Is a `return` missing?"),
        ("return 'x'", "it gave a str", "Expected one tuple"),
        ("return 3", "it gave an int", "Expected one tuple"),
        ("return (t for t in ())", "it gave a generator", "Put list(…) around it"),
        ("return []", "an empty list", "Expected one tuple"),
        ("return {}", "an empty dict", "Expected one tuple"),
        ("return [3]", "it gave an int", "Expected one tuple"),
        ("return 1 / 0", "raised ZeroDivisionError: division by zero (", "without arguments"),
        ("raise SystemExit(2)", "raised SystemExit: 2", "without arguments"),
        ("return (1, 2)", "no tensor among the arguments: 1, 2", "at least one floating tensor"),
        (
            "return torch.ones(1),",
            "missing a required argument: 'y'",
            "Product takes (x, y, dim=0)",
        ),
        ("return (torch.ones(1),) * 5", "too many positional arguments", "5 positional given"),
        (
            "return {'x': torch.ones(1), 'y': torch.ones(1)}",
            "names of forward's parameters as keys (x, y)",
            "Return a tuple in forward's order: (x, y)",
        ),
    ],
)
def test_rubbish(tmp_path, body, message, hint):
    path = written(tmp_path, f"def bad():\n    {body}\n")
    with pytest.raises(InputsError) as caught:
        given(f"{path}:bad")
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.place.startswith("--inputs ")
    assert caught.value.exit_code == 2


def test_places_that_do_not_exist(tmp_path):
    path = written(tmp_path, "def sample():\n    return torch.ones(1), torch.ones(1)\n")
    with pytest.raises(InputsError, match="no file `") as caught:
        given(str(tmp_path / "my_input.py") + ":sample")
    assert "my_inputs.py" in caught.value.hint
    with pytest.raises(InputsError, match="'sampel' is not defined in it") as caught:
        given(f"{path}:sampel")
    assert "sample" in caught.value.hint
    with pytest.raises(InputsError, match=r"no module or file `nowhere\.at_all`"):
        given("nowhere.at_all:sample")


def test_files_that_do_not_load(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    with pytest.raises(InputsError, match=r"syntax error: .*broken.py:1"):
        given(f"{path}:f")
    path.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(InputsError, match=r"called sys.exit\(0\)"):
        given(f"{path}:f")


@pytest.mark.parametrize("text", ["randn(3", "__import__('os')", "randn(10**9, 10**9)", "zzz(3)"])
def test_expressions_that_are_refused(text):
    with pytest.raises(InputsError) as caught:
        given(text)
    assert caught.value.hint


class WithSamples(Product):
    @staticmethod
    def sample_inputs():
        return torch.ones(2), torch.ones(2)


class BadSamples(Product):
    @staticmethod
    def sample_inputs():
        return "rubbish"


def test_sample_inputs_of_the_class():
    (sample,) = samples_for(from_object(WithSamples), Settings())
    assert sample.origin == sample.label == "sample_inputs"
    with pytest.raises(InputsError, match="it gave a str") as caught:
        samples_for(from_object(BadSamples), Settings())
    assert "sample_inputs" in caught.value.place


def test_the_option_comes_before_the_class():
    (sample,) = samples_for(from_object(WithSamples), Settings(inputs="ones(5), ones(5)"))
    assert sample.args[0].shape == (5,)


def test_without_either_inputs_are_inferred():
    assert samples_for(OP, Settings())[0].origin == "inferred"


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias=None, scale=2.0):
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2.0, None, None


def test_keywords_of_a_function_become_positions() -> None:
    op = from_object(Scaled)
    (sample,) = samples_for(op, Settings(inputs="randn(3), scale=4.0"))
    assert sample.args[1:] == (None, 4.0)
    assert sample.kwargs == {}


def test_requires_grad_false_in_an_expression_is_honoured():
    def added(x, y, parts):
        return x + y + parts[0] * parts[1]

    text = "randn(3, requires_grad=False), randn(3), [randn(3), ones(3, requires_grad=False)]"
    (sample,) = from_option(from_object(added), text, 0)
    x, y, parts = sample.args
    assert [t.requires_grad for t in (x, y, *parts)] == [False, True, True, False]


class _Coupled(torch.autograd.Function):
    """y = x + module(x), with the parameters of the module beside it."""

    @staticmethod
    def forward(ctx, x, module, *weights):
        ctx.save_for_backward(x)
        ctx.module = module
        with torch.no_grad():
            return x + module(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = x + ctx.module(x)
        of_x, *of_weights = torch.autograd.grad(y, (x, *ctx.module.parameters()), g)
        return of_x, None, *of_weights


class _CoupledWrong(_Coupled):
    @staticmethod
    def backward(ctx, g):
        of_x, _, weight, bias, *others = _Coupled.backward(ctx, g)
        return of_x, None, weight, bias / 2, *others


def _coupled() -> tuple[object, ...]:
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    module = torch.nn.Sequential(linear[0], torch.nn.Tanh(), linear[1]).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return (x, module, *module.parameters())


def test_parameters_beside_their_module_are_those_of_the_module():
    """A tensor that is a parameter of a given module moves with it."""
    flags = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    (right,) = gradlint.check(_Coupled, _coupled, **flags).targets
    assert right.verdict == "pass", right.findings
    assert not [item for item in right.findings if item.code.startswith("GL4")]
    (wrong,) = gradlint.check(_CoupledWrong, _coupled, **flags).targets
    assert {(item.code, item.input) for item in wrong.findings if item.severity == "error"} == {
        ("GL401", "weights[1]")
    }


def test_modules_without_parameters_among_the_arguments_stay_what_they_are():
    module = torch.nn.Linear(2, 2).double()
    shared = torch.nn.Sequential(module, torch.nn.ReLU(), module)
    x = torch.randn(3, 2, dtype=torch.float64)
    assert with_owners((x, shared)) == (x, shared)
    _, owner, weight = with_owners((x, shared, module.weight))
    other = torch.zeros_like(weight)
    made = owner.over((x, owner, other))
    assert made[0] is made[2]  # a part that is there twice stays one part
    assert made[0].weight is other
    assert made[0].bias is module.bias
    assert torch.equal(made(x)[0], module.bias)
    assert shared[0].weight is weight
