"""Modes that see every operation, without the time that their first use takes elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A ``TorchDispatchMode`` whose first use does not import the compiler.

    PyTorch keeps the compiler away from ``__torch_dispatch__`` by a wrapper around it, and that
    imports the compiler, which takes a second in every worker that has not got it. Where nobody has
    imported it, nothing is compiled, and the method runs as it is written. Which of the two it is
    is decided when a mode is entered: the compiler would also look into a wrapper made here.
    """

    #: ``__torch_dispatch__`` of the class as it is written, and how often the mode is entered now.
    _written: Any
    _depth = 0

    def __init_subclass__(cls, **options: Any) -> None:
        cls._written = cls.__torch_dispatch__
        super().__init_subclass__(**options)

    def __enter__(self) -> Any:
        """See every operation from now on."""
        self._depth += 1
        if self._depth == 1 and "torch._dynamo" not in sys.modules:
            vars(self)["__torch_dispatch__"] = self._written
        return super().__enter__()

    def through(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """What an operation returns; of one that ``torch.library.custom_op`` made of a function of
        Python, the operations inside are seen, too."""
        written = _written_in_python(func)
        if written is None:
            return func(*args, **(kwargs or {}))
        with self:
            return written(*args, **(kwargs or {}))

    def __exit__(self, *raised: object) -> None:
        """See no more."""
        super().__exit__(*raised)
        self._depth -= 1
        if self._depth == 0:
            vars(self).pop("__torch_dispatch__", None)  # which refers to the mode itself


def _written_in_python(func: Any) -> Any:
    """The function that ``custom_op`` was given; None for other operations."""
    known = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {})
    made = known.get(getattr(getattr(func, "_schema", None), "name", ""))
    written = getattr(made, "_init_fn", None)
    inner = getattr(written, "__module__", None) == "torch._library.triton"  # triton_op wraps it
    return None if inner else written
