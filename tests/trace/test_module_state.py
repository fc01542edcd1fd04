"""Plain attributes of modules are put back before every call."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor, nn

from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.module_state import ModuleState
from gradlint.trace.problem import Problem


class Keeps(nn.Module):
    """Keeps everything that can be kept in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.inner.steps = 3
        self.mean = torch.tensor([1.0, 2.0])
        self.seen: list[int] = [7]
        self.last: deque[int] = deque([1, 2], maxlen=2)
        self.table: dict[str, int] = {"a": 1}

    def change(self) -> None:
        self.inner.steps += 1
        self.mean.mul_(2)
        self.seen.append(8)
        self.last.append(3)
        self.table["a"] = 2
        self.cache = torch.ones(2)


def values(module: Any) -> list[Any]:
    return [
        module.inner.steps,
        module.mean.tolist(),
        module.seen,
        list(module.last),
        module.table,
        hasattr(module, "cache"),
    ]


def test_every_kind_of_attribute_is_put_back_in_place() -> None:
    module = Keeps()
    state, before = ModuleState(module), values(module)
    held = (module.mean, module.seen, module.last, module.table)
    assert list(state.changed()) == []
    for _ in range(2):
        module.change()
        assert list(state.changed()) == [
            "cache", "last", "mean", "seen", "table", "inner.steps"
        ]  # fmt: skip
        state.put_back()
        assert values(module) == [3, [1.0, 2.0], [7], [1, 2], {"a": 1}, False]
        assert list(state.changed()) == []
    assert before[:2] == [3, [1.0, 2.0]]
    after = (module.mean, module.seen, module.last, module.table)
    assert all(a is b for a, b in zip(held, after, strict=True))


def test_attributes_of_torch_itself_stay() -> None:
    module = nn.Linear(2, 2)
    state = ModuleState(module)
    module.eval()
    module.register_buffer("scale", torch.ones(1))
    state.put_back()
    assert (module.training, list(module.state_dict())) == (False, ["weight", "bias", "scale"])


class ReadByBackward(nn.Module):
    """Backward reads what its own forward kept, so that nothing may be put back in between."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        module = self

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                module.kept = x
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Tensor) -> Tensor:
                assert module.kept is not None
                return 2 * g * module.kept

        found: Tensor = Square.apply(x)
        return found


def test_state_is_put_back_before_a_call_and_not_after_it() -> None:
    x = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    problem = Problem(from_object(ReadByBackward()), Sample("s", "given", (x,)))
    (gradient,) = problem.pull({"output": torch.ones(1, dtype=torch.float64)})
    assert gradient is not None
    assert gradient.tolist() == [6.0]
