"""Places in the user's source: the expression returned for each input."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradlint.model.report import Location
from gradlint.targets import source
from gradlint.targets.build import from_object

#: backward's body → for each position, (underlined text, texts of the related statements)
BODIES: dict[str, tuple[str, list[tuple[str, list[str]]]]] = {
    "tuple": ("return g * x, g @ w, None", [("g * x", []), ("g @ w", []), ("None", [])]),
    "parentheses": ("return (\n    g * x,\n    g + 1,\n)", [("g * x", []), ("g + 1", [])]),
    "single": ("return 2 * g", [("2 * g", []), ("2 * g", [])]),
    "too few": ("return g, None", [("g", []), ("None", []), ("g, None", [])]),
    "names": (
        "gx = gw = None\nif ctx.needs_input_grad[0]:\n    gx = g @ w\n"
        "gw = g.t() @ x\nreturn gx, gw",
        [("gx", ["gx = g @ w"]), ("gw", ["gw = g.t() @ x"])],
    ),
    "written into": (
        "gx = g.clone()\ngx[x < 0] = 0\ngx *= 2\ngx.mul_(3)\ngx.size()\nreturn gx, g",
        [("gx", ["gx = g.clone()", "gx[x < 0] = 0", "gx *= 2", "gx.mul_(3)"]), ("g", [])],
    ),
    "reassigned": ("gx = g\ngx = gx * 2\nreturn gx, None", [("gx", ["gx = gx * 2"])]),
    "unpacked": ("gx, gw = compute(g)\nreturn gx, gw", [("gx", ["gx, gw = compute(g)"])] * 1),
    "condition": (
        "return g @ w if ctx.needs_input_grad[0] else None, None if x is None else g",
        [("g @ w", []), ("g", [])],
    ),
    "two branches": ("return (g if x.sum() > 0 else -g), None", [("g if x.sum() > 0 else -g", [])]),
    "starred": (
        "return g * 2, *rest, None",
        [("g * 2", []), ("g * 2, *rest, None", []), ("g * 2, *rest, None", [])],
    ),
    "starred of known": ("return (*(g, g * 2), None)", [("g", []), ("g * 2", []), ("None", [])]),
    "padded": (
        "return (g * 3,) + (None,) * 2",
        [("g * 3", []), ("None", []), ("None", []), ("(g * 3,) + (None,) * 2", [])],
    ),
    "padded by a name": ("ret = (g * 3,)\nreturn ret + (None,) * ctx.n", [("g * 3", [])]),
    "tuple under a name": (
        "gx = g * 2\ngrads = (gx, g * 4)\nreturn grads",
        [("gx", ["gx = g * 2"]), ("g * 4", [])],
    ),
    "list filled in": (
        "grads = [None] * 3\ngrads[1] = g * 5\nreturn tuple(grads)",
        [("None", []), ("g * 5", [])],
    ),
    "whole conditional": (
        "return (g * 2, None) if ctx.flag else (None, g * 3)",
        [("g * 2", []), ("g * 3", [])],
    ),
    "call": ("return compute(g)", [("compute(g)", []), ("compute(g)", [])]),
    "several returns": ("if ctx.flag:\n    return g, None\nreturn g * 7, None", [("g * 7", [])]),
    "nested function": ("def inner():\n    return 1\nreturn g * 7, None", [("g * 7", [])]),
    "characters": ("s = 'äöü'; return g, 'ß', g * 3", [("g", []), ("'ß'", []), ("g * 3", [])]),
}  # fmt: skip


def make(write, body: str, name: str = "Op") -> type:
    text = "from torch.autograd import Function\n\nclass Op(Function):\n    @staticmethod\n"
    text += "    def forward(ctx, x, w, b): return x\n\n    @staticmethod\n"
    text += "    def backward(ctx, g):\n" + textwrap.indent(body, " " * 8) + "\n"
    write("place_case.py", "").write_text(text, encoding="utf-8")
    import importlib

    return getattr(importlib.import_module("place_case"), name)


def text_of(location: Location) -> str:
    """What the span covers, by characters, lines joined."""
    lines = Path(location.file).read_text(encoding="utf-8").split("\n")
    chosen = lines[location.line - 1 : location.end_line]
    chosen[-1] = chosen[-1][: location.end_column - 1]
    chosen[0] = chosen[0][location.column - 1 :]
    return " ".join(line.strip() for line in chosen)


@pytest.mark.parametrize("case", BODIES)
def test_returned_gradient(write, monkeypatch, tmp_path, case):
    monkeypatch.syspath_prepend(str(tmp_path))
    body, expected = BODIES[case]
    op = make(write, body)
    for position, (text, related) in enumerate(expected):
        place, excerpt, spans = source.returned_gradient(op, position, None, "returned for `x`")
        assert text_of(place) == text
        assert [text_of(span) for span in spans] == related
        assert place.file == "place_case.py"
        assert excerpt.label == "returned for `x`"
        shown = dict(excerpt.lines)
        assert list(shown) == sorted(shown)
        assert {place.line, *(span.line for span in spans)} <= set(shown)
        assert "def backward" in "".join(shown.values())


def test_executed_return_is_chosen_by_its_line(write, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    op = make(write, BODIES["several returns"][0])
    assert text_of(source.returned_gradient(op, 0, 10, "")[0]) == "g"
    assert text_of(source.returned_gradient(op, 0, 11, "")[0]) == "g * 7"
    assert text_of(source.returned_gradient(op, 0, 999, "")[0]) == "g * 7"
    assert text_of(source.returned_gradient(op, -1, 10, "")[0]) == "g, None"


def test_long_backward_shows_context_and_the_assignment(write, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    op = make(write, "gx = g * 2\n" + "y = 1\n" * 30 + "return gx, None")
    place, excerpt, _ = source.returned_gradient(op, 0, None, "")
    assert place.line == 40
    assert [number for number, _ in excerpt.lines] == [9, 38, 39, 40]


class Base(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 11


class Derived(Base):
    @staticmethod
    def forward(ctx, x):
        return x + 1


class Vjp(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def vjp(ctx, g):
        return g * 12


def shared(ctx, g):
    return g * 13


class Assigned(Function):
    forward = staticmethod(lambda ctx, x: x)
    backward = staticmethod(shared)


@pytest.mark.parametrize(
    ("function", "text"), [(Derived, "g * 11"), (Vjp, "g * 12"), (Assigned, "g * 13")]
)
def test_backward_found_where_it_is(function, text):
    assert text_of(source.returned_gradient(function, 0, None, "")[0]) == text


def test_class_inside_a_function():
    class Local(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 14

    assert text_of(source.returned_gradient(Local, 0, None, "")[0]) == "g * 14"
    assert text_of(source.definition(from_object(Local))[0]) == "class Local"
    assert text_of(source.method(Local, "backward")[0]) == "def backward"


def test_definitions_and_methods():
    assert text_of(source.definition(from_object(Derived))[0]) == "class Derived"
    assert text_of(source.definition(shared)[0]) == "def shared"
    forward = source.method(from_object(Derived), "forward")[0]
    backward = source.method(Derived, "backward")[0]
    assert forward.line > backward.line
    assert source.method(Derived, "setup_context") == (None, None, [])
    layer = source.method(from_object(torch.nn.Linear), "forward")[0]
    assert layer.file.endswith("linear.py")
    assert text_of(source.method(from_object(shared), "forward")[0]) == "def shared"


def test_definitions_that_appear_twice(write, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "import torch\nif {}:\n"
    for value in (1, 2):
        text += "    class Twice(torch.autograd.Function):\n        @staticmethod\n"
        text += "        def forward(ctx, x): return x\n        @staticmethod\n"
        text += f"        def backward(ctx, g): return g * {value}\n"
        text += "else:\n" if value == 1 else ""
    import importlib

    for value in (1, 2):
        write(f"twice_{value}.py", "").write_text(text.format(value == 1))
        twice = importlib.import_module(f"twice_{value}").Twice
        assert text_of(source.returned_gradient(twice, 0, None, "")[0]) == f"g * {value}"


def test_without_source_nothing_is_said():
    namespace: dict = {}
    exec(
        "from torch.autograd import Function\nclass Op(Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x\n"
        "    @staticmethod\n    def backward(ctx, g): return g\n",
        namespace,
    )
    nothing = (None, None, [])
    assert source.returned_gradient(namespace["Op"], 0, None, "") == nothing
    assert source.definition(torch.relu) == nothing
    assert source.definition(None) == nothing
    assert source.method(3, "forward") == nothing
    assert source.returned_gradient(3, 0, None, "") == nothing  # type: ignore[arg-type]
