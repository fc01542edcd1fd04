"""Text of classes, indexes of calls: read once for a file, with the same result."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gradlint.targets import calls, example_calls, nodes, source_file
from gradlint.targets.calls import aliases_of, called_as, calls_to

TEXT = '''
import functools


def decorator(cls):
    return cls


@decorator
class Decorated:
    """One."""

    def first(self):
        return lambda x: x  # a comment
    # behind the last statement


class Outer:
    class Inner:
        x = """
text at the margin
"""

    def method(self):
        class Local:
            pass
        return Local

    @functools.lru_cache
    def cached(self):
        return 1


if True:
    class Conditional(Outer):
        pass

# of nobody


class Short: pass  # on its line
# behind it


def short(x): return x
    # indented, and of nobody


def commented(
    x,  # an argument
):
    """Says so."""
    return x
    # at its end

  # out of place
# at the margin
@functools.wraps(short)
def wrapped(x):
    return short(x)


short_lambda = lambda x: (
    x
)


class Last:
    def method(self):
        return """
# text
"""
    # the end
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "holds_classes.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("holds_classes", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["holds_classes"] = made
    spec.loader.exec_module(made)
    return made


def test_the_text_is_that_of_inspect(module: ModuleType) -> None:
    things = [
        *(module.Decorated, module.Decorated.first, module.Outer, module.Outer.Inner),
        *(module.Outer.method, module.Outer().method(), module.Outer.cached, module.Conditional),
        *(module.Short, module.short, module.commented, module.wrapped, module.short_lambda),
        *(module.Last, module.Last.method, module.Last().method),
    ]
    for thing in things:
        assert nodes.source_text(thing) == inspect.getsource(thing), thing


def test_there_is_no_text_of_what_has_no_file() -> None:
    with pytest.raises((OSError, TypeError)):
        nodes.source_text(int)
    made = type("Made", (), {})
    with pytest.raises((OSError, TypeError)):
        nodes.source_text(made)


def test_what_was_read_ahead_is_not_parsed_again(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(module.__file__)
    for part in (nodes, calls, example_calls):
        part.read_ahead(path)

    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(source_file, "_parse", parse)
    monkeypatch.setattr(calls, "bindings", parse)
    monkeypatch.setattr(calls.ast, "iter_child_nodes", parse)
    assert calls.call_hints(module.Outer) == []
    monkeypatch.undo()
    monkeypatch.setattr(source_file, "_parse", parse)
    assert nodes.class_node(module.Outer) is not None
    assert nodes.function_node(module.Decorated.first) is not None
    assert nodes.function_node(module.Decorated().first())[1].lineno == 14  # type: ignore[index]
    assert "text at the margin" in nodes.source_text(module.Outer)
    assert example_calls.example_calls(module.Outer) == []


def test_calls_by_name() -> None:
    tree = ast.parse(
        "y = Op.apply(1)\n"
        "def f(x):\n"
        "    return g(m.Op.apply(x), op(2))\n"
        "class C:\n"
        "    z = Other.apply(op(3))\n"
        "    apply(4)\n"
    )

    def found(*names: str) -> list[str]:
        return [
            f"{ast.unparse(call)} in {'/'.join(scope.name for scope in scopes)}"  # type: ignore[attr-defined]
            for call, scopes in calls_to(tree, names)
        ]

    assert found("Op.apply") == ["Op.apply(1) in ", "m.Op.apply(x) in f"]
    assert found("op", "Op.apply") == [
        *("Op.apply(1) in ", "m.Op.apply(x) in f", "op(2) in f", "op(3) in C"),
    ]
    assert found("apply") == ["apply(4) in C"]
    assert found("Op") == found("absent") == []
    assert aliases_of(tree, "Op.apply") == set()
    assert called_as("Op", ["op"], True) == ["Op.apply", "op"]
    assert called_as("f", [], False) == ["f"]


def test_other_names_of_an_operator() -> None:
    tree = ast.parse(
        "one = two = Op.apply\nif one:\n    three = m.Op.apply\nfour = Op\nfive: int = Op.apply\n"
        "six, seven = Op.apply, 7\nm.eight = Op.apply\ndef f():\n    nine = Op.apply\n"
    )
    assert aliases_of(tree, "Op.apply") == {"one", "two", "three"}
    assert aliases_of(tree, "Op") == {"four"}
