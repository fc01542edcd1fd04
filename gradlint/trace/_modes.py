"""Read PyTorch's stacks of modes, and remove modes that an op left on them."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack, _pop_mode
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext

#: Returns the topmost saved-tensor hooks; None in PyTorch 2.6, which lacks the function.
_top_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)

#: Inference modes entered by :func:`set_inference`; without a reference, a mode would end.
_entered: list[Any] = []


def set_inference(enabled: bool) -> None:
    """Switch inference mode on or off permanently."""
    mode = torch.inference_mode(enabled)
    mode.__enter__()
    _entered.append(mode)


def functions() -> tuple[Any, ...]:
    """Every active ``TorchFunctionMode``, without the one that sets the default device."""
    stack = _get_current_function_mode_stack()
    return tuple(mode for mode in stack if not isinstance(mode, DeviceContext))


def pop_functions(before: tuple[Any, ...]) -> None:
    """Leave the topmost modes until there are no more than in ``before``."""
    while len(functions()) > len(before):
        _pop_mode()


def dispatches() -> tuple[Any, ...]:
    """Every active ``TorchDispatchMode``."""
    return tuple(_python_dispatch._get_current_dispatch_mode_stack())


def pop_dispatches(before: tuple[Any, ...]) -> None:
    """Leave the topmost modes until there are no more than in ``before``."""
    while len(dispatches()) > len(before):
        _python_dispatch._pop_mode()


def hooks() -> tuple[Any, ...] | None:
    """The saved-tensor hooks entered last; None if there are none or PyTorch does not show them."""
    found: tuple[Any, ...] | None = _top_hooks(True) if _top_hooks is not None else None
    return found


def pop_hooks(before: tuple[Any, ...] | None) -> None:
    """Remove the hooks entered since ``before``."""
    while hooks() not in (before, None):
        torch._C._autograd._pop_saved_tensors_default_hooks()


def shown(value: Any) -> str:
    """The names of modes and functions, or "none"."""
    values = value if isinstance(value, tuple) else (value,)
    names = [getattr(v, "__name__", type(v).__name__) for v in values if v is not None]
    return ", ".join(names) or "none"
