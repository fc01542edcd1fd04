"""References loaded as a worker loads them, and what is said when the user's code raises."""

from __future__ import annotations

import pytest
import torch

from gradlint.base.errors import TargetError
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings
from gradlint.targets.load import expand, load
from gradlint.targets.load_error import LoadError
from gradlint.targets.resolve import resolve

SETTINGS = Settings()

SQUARE = """
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, power: int = 2):
            ctx.save_for_backward(x)
            return x**power

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output, None
"""


def loaded(target: str, settings: Settings = SETTINGS) -> Op:
    (ref,) = resolve(target, settings)
    return load(ref, settings)


def all_loaded(target: str) -> list[str]:
    found = []
    for ref in resolve(target, SETTINGS):
        for one in expand(ref, SETTINGS):
            op = load(one, SETTINGS)
            assert op.target == one.target
            found.append(f"{op.kind} {op.target}")
    return found


def failure(target: str, settings: Settings = SETTINGS) -> LoadError:
    def load_all() -> None:
        for ref in resolve(target, settings):
            for one in expand(ref, settings):
                load(one, settings)

    with pytest.raises(LoadError) as raised:
        load_all()
    assert "\n" not in raised.value.message
    return raised.value


@pytest.mark.parametrize("target", ["ops/square.py:Square", "ops.square:Square"])
def test_function(write, target):
    write("ops/square.py", SQUARE)
    op = loaded(target)
    assert (op.name, op.kind, op.target) == ("Square", "function", target)
    assert list(op.signature.parameters) == ["x", "power"]
    assert op.signature.parameters["power"].annotation is int
    assert (op.location.file, op.location.line) == ("ops/square.py", 4)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    op.call(x).sum().backward()
    assert x.grad.tolist() == [2.0, 6.0]
    assert issubclass(op.function, torch.autograd.Function)


def test_file_of_a_package_keeps_its_relative_imports(write):
    write("deep/pkg/__init__.py", "")
    write("deep/pkg/sub/__init__.py", "from ..base import BASE\n")
    write("deep/pkg/base.py", "BASE = 3\n")
    write("deep/pkg/sub/op.py", "from ..base import BASE\ndef times(x): return x * BASE\n")
    op = loaded("deep/pkg/sub/op.py:times")
    assert op.call(2) == 6
    assert op.call.__module__ == "pkg.sub.op"


@pytest.mark.parametrize("folder", ["my ops", "my-ops"])
def test_file_of_a_folder_that_no_import_can_name(write, folder):
    write(f"{folder}/__init__.py", "")
    write(f"{folder}/beside_it.py", "VALUE = 5\n")
    write(f"{folder}/named.py", "import beside_it\ndef f(x): return x + beside_it.VALUE\n")
    assert loaded(f"{folder}/named.py:f").call(1) == 6


def test_script_finds_its_neighbours(write):
    write("a/neighbour_of_a.py", "VALUE = 5\n")
    write("a/script_a.py", "import neighbour_of_a\ndef f(x): return x + neighbour_of_a.VALUE\n")
    assert loaded("a/script_a.py:f").call(1) == 6


def test_working_directory_is_importable_from_a_file_elsewhere(write):
    write("shared_here.py", "VALUE = 7\n")
    write("b/script_b.py", "import shared_here\ndef f(x): return x + shared_here.VALUE\n")
    assert loaded("b/script_b.py:f").call(1) == 8


def test_files_of_one_name_in_two_folders(write):
    write("one/same_stem.py", "def f(x): return 1\n")
    write("two/same_stem.py", "def f(x): return 2\n")
    assert [loaded(f"{folder}/same_stem.py:f").call(0) for folder in ("one", "two")] == [1, 2]


@pytest.mark.parametrize("name", ["random.py", "torch.py", "01-odd name.py", "yaml.py"])
def test_files_that_shadow_other_modules_or_are_no_names(write, name):
    stem = name.removesuffix(".py")
    also = f"import {stem} as other\n" if stem.isidentifier() else ""
    write(f"odd/{name}", also + "def f(x): return 'mine'\n")
    assert loaded(f"odd/{name}:f").call(0) == "mine"


def test_file_is_executed_once(write):
    write(
        "counted.py",
        """
        import builtins
        builtins.count_me = getattr(builtins, "count_me", 0) + 1
        def f(x): return builtins.count_me
        """,
    )
    assert [loaded("counted.py:f").call(0), loaded("counted.py:f").call(0)] == [1, 1]
    assert loaded("counted:f").call(0) == 1


def test_base_class_is_no_operator_where_it_stands_alone(write):
    write(
        "base_alone.py",
        """
        import torch
        class Through(torch.autograd.Function):
            \"\"\"Subclasses say what forward computes.\"\"\"
            @staticmethod
            def forward(ctx, x):
                raise NotImplementedError("forward is that of a subclass")
            @staticmethod
            def backward(ctx, grad):
                return grad
        Made = type("Made", (Through,), {"forward": staticmethod(lambda ctx, x: x.round())})
        """,
    )
    assert all_loaded("base_alone.py") == ["function base_alone.py:Made"]
    assert loaded("base_alone.py:Through").kind == "function"  # named, it is meant


def test_package_without_operators_in_its_text(write):
    write(
        "made.py",
        """
        import torch
        def make(name):
            def forward(ctx, x): return x
            bases = (torch.autograd.Function,)
            return type(name, bases, {"forward": staticmethod(forward), "__module__": __name__})
        A = make("A")
        B = make("B")
        plain = 3
        """,
    )
    assert all_loaded("made.py") == ["function made.py:A", "function made.py:B"]
    assert all_loaded("made") == ["function made:A", "function made:B"]


def test_file_without_any_operator(write):
    write("nothing.py", "x = 1\n")
    assert all_loaded("nothing.py") == []


def test_class_that_conditions_left_out_is_no_mistake_of_the_user(write):
    write("conditional.py", "import torch\nif False:\n    class A(torch.autograd.Function):\n"
          "        def forward(ctx, x): return x\n")  # fmt: skip
    assert failure("conditional.py").kind == "absent"
    with pytest.raises(TargetError):
        loaded("conditional.py:A")


@pytest.mark.parametrize(
    ("other", "kind"), [("None", "NoneType"), ("{}", "dict"), ("3", "int"), ("torch", "")]
)
def test_a_name_that_is_given_to_something_else_is_no_mistake_of_the_user(write, other, kind):
    write(
        "replaced.py",
        f"""
        import torch
        try:
            import a_module_that_is_not_there
            class A(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x): return x
        except ImportError:
            A = {other}

        class B(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        """,
    )
    a, b = resolve("replaced.py", SETTINGS)
    with pytest.raises(LoadError) as caught:
        load(a, SETTINGS)
    what = f"an object of type {kind}" if kind else "a module"
    assert caught.value.kind == "absent"
    assert caught.value.message == (
        "`A` is an operator in the source, but importing `replaced.py` leaves something else: "
        f"`A` is {what}"
    )
    assert caught.value.location.line == 5
    assert load(b, SETTINGS).kind == "function"
    with pytest.raises(TargetError, match=f"`A` is {what}"):
        loaded("replaced.py:A")


# -- kinds -------------------------------------------------------------------------------------


def test_module_class_instance_callable_partial_and_methods(write):
    write(
        "kinds.py",
        """
        import functools, torch
        from torch import nn

        class Scale(nn.Module):
            def __init__(self, factor: float = 2.0):
                super().__init__()
                self.factor = nn.Parameter(torch.tensor(factor))
            def forward(self, x, shift=0.0): return x * self.factor + shift
            def twice(self, x): return 2 * self.forward(x)
            @staticmethod
            def halve(x): return x / 2
            @classmethod
            def third(cls, x): return x / 3

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale, flag=True): return x * scale
            @staticmethod
            def backward(ctx, g): return g, None, None

        instance = Scale(5.0)
        power = functools.partial(torch.pow, exponent=3)
        scaled = functools.partial(F.apply, flag=False)
        apply = F.apply
        layer = functools.partial(Scale, factor=4.0)
        cube = lambda x: x**3
        class Caller:
            def __call__(self, x, y): return x + y
        caller = Caller()
        """,
    )
    x = torch.tensor(3.0)

    def check(attribute, kind, arguments, result, *args):
        op = loaded(f"kinds:{attribute}")
        assert op.kind == kind
        assert list(op.signature.parameters) == arguments
        assert float(op.call(*(args or (x,))).detach()) == result
        return op

    assert check("Scale", "module", ["x", "shift"], 6.0).module.factor.item() == 2.0
    check("instance", "module", ["x", "shift"], 15.0)
    check("layer", "module", ["x", "shift"], 12.0)
    check("Scale.halve", "callable", ["x"], 1.5)
    check("Scale.third", "callable", ["x"], 1.0)
    check("Scale.twice", "callable", ["x"], 12.0)
    check("instance.twice", "callable", ["x"], 30.0)
    check("cube", "callable", ["x"], 27.0)
    check("caller", "callable", ["x", "y"], 7.0, x, 4)
    assert check("apply", "function", ["x", "scale", "flag"], 6.0, x, 2).name == "apply"
    assert float(loaded("kinds:power").call(x)) == 27.0
    partial = loaded("kinds:scaled")
    assert partial.kind == "callable"
    assert partial.signature.parameters["flag"].default is False


def test_built_in_has_its_arguments_from_torch():
    for target in ("torch:relu", "torch.Tensor.exp"):
        assert next(iter(loaded(target).signature.parameters)) == "input"


def test_registered_ops(write):
    assert list(loaded("torch.ops.aten.leaky_relu").signature.parameters) == [
        "self",
        "negative_slope",
    ]
    # ``from`` is a name that only Python reserves.
    assert "from_" in loaded("torch.ops.aten.random.from").signature.parameters
    op = loaded("torch.ops.aten.sum.dim_IntList")
    assert (op.kind, op.name) == ("library", "sum")
    assert op.signature.parameters["keepdim"].default is False
    assert op.call(torch.ones(2, 3), [1]).tolist() == [3.0, 3.0]


def test_op_registered_by_what_import_names(write):
    write(
        "registers.py",
        """
        import torch
        @torch.library.custom_op("gradlint_tests::triple", mutates_args=())
        def triple(x: torch.Tensor, k: int = 3) -> torch.Tensor:
            return x * k
        """,
    )
    target = "torch.ops.gradlint_tests.triple"
    with pytest.raises(TargetError) as raised:
        loaded(target)
    assert "--import" in raised.value.hint
    settings = Settings(imports=("registers",))
    assert loaded(target, settings).call(torch.tensor(2.0)).item() == 6.0
    assert [ref.target for ref in expand(resolve("torch.ops.gradlint_tests", settings)[0], settings)
            ] == [target]  # fmt: skip
    assert all_loaded("registers.py") == ["library registers.py:triple"]
    assert list(loaded("registers.py:triple").signature.parameters) == ["x", "k"]


@pytest.mark.parametrize(
    ("target", "offered"),
    [
        ("torch.ops.aten.rleu", "`torch.ops.aten.relu"),
        ("torch.ops.atem.relu", "`torch.ops.aten.relu"),
        ("torch.ops.aten.add.Tensr", "`torch.ops.aten.add.Tensor`"),
    ],
)
def test_unknown_registered_ops(target, offered):
    with pytest.raises(TargetError) as raised:
        loaded(target)
    assert offered in raised.value.hint


# -- what is no operator -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("collections:OrderedDict", "`OrderedDict` is a class that is not an operator"),
        ("no_op:Colour", "`Colour` is an Enum class"),
        ("no_op:number", "`number` is an object of type int"),
        ("no_op:Abstract", "`Abstract` is not an operator: it does not define forward"),
        ("no_op:os", "`os` is a module"),
        ("no_op:F.forward", "`F.forward` is a method of a torch.autograd.Function"),
        ("no_op:Needs.method", "can't be constructed without arguments"),
        ("torch.autograd:Function", "`Function` is not an operator: it does not define forward"),
    ],
)
def test_what_is_no_operator(write, target, message):
    write(
        "no_op.py",
        """
        import enum, os, torch
        class Colour(enum.Enum):
            RED = 1
        number = 3
        class Abstract(torch.autograd.Function): pass
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        class Needs:
            def __init__(self, config): self.config = config
            def method(self, x): return x
        """,
    )
    with pytest.raises(TargetError) as raised:
        loaded(target)
    assert message in raised.value.message
    assert raised.value.hint


def test_missing_attribute_offers_the_nearest(write):
    write("late.py", "globals()['Square'] = abs\nclass Box:\n    def area(x): return x\n")
    with pytest.raises(TargetError) as raised:
        loaded("late.py:Sqare")
    assert raised.value.hint == "Did you mean `late.py:Square`?"
    with pytest.raises(TargetError) as raised:
        loaded("late:Box.aera")
    assert "`late:Box.area`" in raised.value.hint


# -- the user's code raises --------------------------------------------------------------------

RAISING = {
    "value": ("import math\n\nmath.sqrt(-1)\n", "raised", "ValueError", 3),
    "exit": ("import sys\nsys.exit(3)\n", "exit", "sys.exit(3)", 2),
    "plain_exit": ("raise SystemExit\n", "exit", "sys.exit()", 1),
    "zero": ("def f():\n    return 1 / 0\nf()\n", "raised", "ZeroDivisionError", 2),
    "syntax": ("x = 1\ndef f(:\n    pass\n", "syntax", "syntax error", 2),
    "indent": ("def f():\nreturn 1\n", "syntax", "expected an indented block", 2),
    "missing": ("\nimport not_installed_anywhere\n", "missing", "`not_installed_anywhere`", 2),
    "name": ("from os import not_there\n", "raised", "ImportError", 1),
    "interrupt": ("raise KeyboardInterrupt\n", "interrupt", "KeyboardInterrupt", 1),
    "generator": ("raise GeneratorExit\n", "raised", "GeneratorExit", 1),
    "stop": ("next(iter([]))\n", "raised", "StopIteration", 1),
    "deep": ("def f(): f()\nf()\n", "raised", "RecursionError", 1),
    "speechless": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
        "raised",
        "E: <E, whose __str__ raises ValueError>",
        3,
    ),
    "library": ("import json\njson.loads('{')\n", "raised", "JSONDecodeError", 2),
    "lines": ("raise ValueError('first\\nsecond')\n", "raised", "ValueError: first", 1),
}


@pytest.mark.parametrize("case", RAISING)
@pytest.mark.parametrize("form", ["{}.py", "{}.py:Op", "{}", "{}:Op"])
def test_module_that_raises(write, case, form):
    text, kind, message, line = RAISING[case]
    write(f"raises_{case}.py", text + "class Op: pass\n")
    error = failure(form.format(f"raises_{case}"))
    assert error.kind == kind
    assert message in error.message
    assert (error.location.file, error.location.line) == (f"raises_{case}.py", line)
    assert error.error is not None


def test_place_is_the_line_that_raised_in_the_package(write):
    write("outer_pkg/__init__.py", "")
    write("outer_pkg/inner.py", "\n\nVALUE = {}['key']\n")
    write("outer_pkg/op.py", "from . import inner\ndef f(x): return x\n")
    error = failure("outer_pkg.op:f")
    assert (error.location.file, error.location.line) == ("outer_pkg/inner.py", 3)
    assert error.location.column == 1
    assert error.message == "importing `outer_pkg.op` raised KeyError: 'key'"


def test_failed_module_is_tried_again(write):
    write("flaky.py", "import flaky_dependency\ndef f(x): return x\n")
    assert failure("flaky.py:f").kind == "missing"
    write("flaky_dependency.py", "")
    assert loaded("flaky.py:f").call(1) == 1


def test_attribute_that_raises(write):
    write(
        "lazy_attribute.py",
        """
        def __getattr__(name):
            raise SystemExit(4)
        """,
    )
    error = failure("lazy_attribute:Op")
    assert (error.kind, error.location.line) == ("exit", 3)


def test_import_option_that_fails(write):
    write("helper_that_exits.py", "import sys\nsys.exit(1)\n")
    settings = Settings(imports=("helper_that_exits",))
    assert failure("torch.ops.aten.relu", settings).kind == "exit"
    with pytest.raises(TargetError):
        loaded("torch.ops.aten.relu", Settings(imports=("not_installed_anywhere",)))


def test_module_whose_constructor_raises(write):
    write(
        "constructors.py",
        """
        from torch import nn
        class Exits(nn.Module):
            def __init__(self):
                raise SystemExit(2)
        class Picky(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.width = config.parts[0].width
        """,
    )
    error = failure("constructors:Exits")
    assert (error.kind, error.location.line) == ("exit", 5)
    error = failure("constructors:Picky")
    assert error.kind == "constructor"
    assert "`config`" in error.message
    assert "Picky(…)" in error.hint


def test_references_that_load_does_not_take():
    with pytest.raises(TargetError):
        load(OpRef("a.yaml", "spec", "a.yaml"), SETTINGS)
    with pytest.raises(TargetError):
        load(OpRef("a.py", "file", "a.py", "*"), SETTINGS)


def test_the_import_machinery_is_no_place_in_the_users_code(tmp_path, monkeypatch):
    import importlib

    from gradlint.targets.load_error import raised_at

    broken = tmp_path / "no_extension.so"
    broken.write_bytes(b"no library")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.path_importer_cache", {})
    with pytest.raises(ImportError) as raised:
        importlib.import_module("no_extension")
    place = raised_at(raised.value)
    assert place is None or "importlib" not in place.file


def test_what_is_missing_is_named_with_the_next_step(write):
    write("kernels.py", "import triton.absent\n\n\ndef f(x): ...\n")
    write("other.py", "import no_such_module\n\n\ndef f(x): ...\n")
    found = failure("kernels.py:f")
    assert found.kind == "missing"
    assert "needs the module `triton" in found.message
    assert "`pip install triton`" in found.hint
    assert "--triton-interpret" in found.hint
    assert "triton" not in failure("other.py:f").hint


def test_a_triton_op_is_where_its_function_is(write):
    write(
        "registered.py",
        """
        import torch
        @torch.library.triton_op("gradlint_tests::twice", mutates_args={})
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x + x
        """,
    )
    assert all_loaded("registered.py") == ["library registered.py:twice"]
    op = loaded("registered.py:twice")
    assert op.defining.__name__ == "twice"
    assert op.defining.__module__ == "registered"
    assert op.location.file == "registered.py"
