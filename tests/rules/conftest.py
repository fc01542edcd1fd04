"""Ops written in a test, bound to arguments."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.model.op import Op
from gradlint.model.rule import Outcome, Rule
from gradlint.model.sample import Sample, map_tensors
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def with_grad(value: Any, dtype: torch.dtype = torch.float64) -> Any:
    """``value`` with every floating tensor in ``dtype`` and, unless some tensor requires grad
    already, every floating or complex one requiring it."""
    found: list[torch.Tensor] = []
    map_tensors(value, lambda tensor: found.append(tensor) or tensor)
    chosen = any(tensor.requires_grad for tensor in found)

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        wanted = dtype if tensor.is_floating_point() else tensor.dtype
        moved = tensor.detach().to(wanted)
        differentiable = moved.is_floating_point() or moved.is_complex()
        return moved.requires_grad_(tensor.requires_grad if chosen else differentiable)

    return map_tensors(value, convert)


def bind(op: Any, *args: Any, dtype: torch.dtype = torch.float64, **settings: Any) -> Subject:
    """``op`` (a Function class, module, callable or Op) on ``args``."""
    loaded = op if isinstance(op, Op) else from_object(op)
    sample = Sample("s", "sample_inputs", with_grad(args, dtype))
    return Subject(loaded, sample, Settings(seed=1, **settings))


@pytest.fixture
def subject() -> Callable[..., Subject]:
    """Binds an op to arguments."""
    return bind


@pytest.fixture
def probed() -> Callable[..., Outcome]:
    """Runs a rule's probe on an op with arguments."""

    def run(rule: Rule, op: Any, *args: Any, **settings: Any) -> Outcome:
        assert rule.probe is not None
        return rule.probe(bind(op, *args, **settings))

    return run


@pytest.fixture
def load_module(tmp_path: Path) -> Callable[[str], ModuleType]:
    """Writes source to a file and imports it."""
    names: list[str] = []

    def load(text: str, name: str = "written") -> ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"gradlint_test_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        names.append(spec.name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        sys.modules.pop(name, None)
