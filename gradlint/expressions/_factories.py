"""Makes tensors from sizes: bounded, in the default dtype and device, from one generator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.expressions import limits
from gradlint.expressions._bounds import tensors
from gradlint.expressions.limits import TooLarge, check_elements, check_size, kind_of


@dataclass
class Factory:
    """Makes tensors for one evaluation.

    Args:
        generator: source of random numbers, None for torch's global one.
        dtype: of floating tensors.
        device: of all tensors.
    """

    generator: torch.Generator | None
    dtype: torch.dtype
    device: torch.device

    def make(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        """The tensor that ``name(*args, **kwargs)`` stands for."""
        requires_grad = kwargs.pop("requires_grad", False)
        made = getattr(self, name)(*args, **kwargs)
        return made.detach().requires_grad_() if requires_grad else made

    def _filled(
        self, name: str, size: tuple[Any, ...], kwargs: dict[str, Any], random: bool
    ) -> torch.Tensor:
        shape = _shape(size, kwargs)
        dtype = kwargs.pop("dtype", None) or self.dtype
        options: dict[str, Any] = {"generator": self._source()} if random else {}
        return getattr(torch, name)(shape, dtype=dtype, device=self.device, **options, **kwargs)

    def _source(self) -> torch.Generator | None:
        if self.generator is not None and self.generator.device.type != self.device.type:
            return None
        return self.generator

    def zeros(self, *size: Any, **kwargs: Any) -> torch.Tensor:
        return self._filled("zeros", size, kwargs, False)

    def ones(self, *size: Any, **kwargs: Any) -> torch.Tensor:
        return self._filled("ones", size, kwargs, False)

    def rand(self, *size: Any, **kwargs: Any) -> torch.Tensor:
        return self._filled("rand", size, kwargs, True)

    def randn(self, *size: Any, **kwargs: Any) -> torch.Tensor:
        return self._filled("randn", size, kwargs, True)

    def _like(self, name: str, like: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
        check_elements(like.numel())
        if not name.startswith("rand"):
            return getattr(torch, f"{name}_like")(like, **kwargs)
        dtype = kwargs.pop("dtype", None) or like.dtype
        return getattr(torch, name)(
            like.shape, dtype=dtype, device=like.device, generator=self._source(), **kwargs
        )

    def zeros_like(self, input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return self._like("zeros", input, kwargs)

    def ones_like(self, input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return self._like("ones", input, kwargs)

    def rand_like(self, input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return self._like("rand", input, kwargs)

    def randn_like(self, input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        return self._like("randn", input, kwargs)

    def full_like(self, input: torch.Tensor, fill_value: Any, **kwargs: Any) -> torch.Tensor:
        return torch.full_like(input, fill_value, **kwargs)

    def bernoulli(self, input: torch.Tensor, p: float | None = None) -> torch.Tensor:
        chance = input if p is None else torch.full_like(input, p)
        return torch.bernoulli(chance, generator=self._source())

    def full(self, size: Any, fill_value: Any, **kwargs: Any) -> torch.Tensor:
        shape = _shape((size,), {})
        if isinstance(fill_value, float):
            kwargs.setdefault("dtype", self.dtype)
        return torch.full(shape, fill_value, device=self.device, **kwargs)

    def randint(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        rest = list(args)
        size = kwargs.pop("size", None)
        if size is None and rest and isinstance(rest[-1], (list, tuple)):
            size = rest.pop()
        if size is None:
            raise TypeError("randint needs a size: randint(low, high, (3, 4))")
        low = kwargs.pop("low", rest.pop(0) if len(rest) == 2 else 0)
        high = kwargs.pop("high", rest.pop(0) if rest else None)
        if high is None:
            raise TypeError("randint needs the upper end: randint(low, high, (3, 4))")
        shape = _shape((size,), {})
        return torch.randint(
            low, high, shape, generator=self._source(), device=self.device, **kwargs
        )

    def randperm(self, n: int, **kwargs: Any) -> torch.Tensor:
        check_elements(n)
        return torch.randperm(n, generator=self._source(), device=self.device, **kwargs)

    def eye(self, n: int, m: int | None = None, **kwargs: Any) -> torch.Tensor:
        columns = n if m is None else m
        check_size((n, columns))
        kwargs.setdefault("dtype", self.dtype)
        return torch.eye(n, columns, device=self.device, **kwargs)

    def arange(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        start = kwargs.pop("start", None)
        end = kwargs.pop("end", None)
        step = kwargs.pop("step", None)
        values = [_number(value) for value in args]
        if len(values) > 3 or len(values) + sum(v is not None for v in (start, end, step)) > 3:
            raise TypeError("arange takes at most start, end and step")
        if end is None and len(values) == 1 and start is None:
            end, values = values[0], []
        if start is None:
            start = values.pop(0) if values else 0
        if end is None and values:
            end = values.pop(0)
        if step is None:
            step = values.pop(0) if values else 1
        start, end, step = _number(start), _number(end), _number(step)
        if step != 0:
            check_elements(math.ceil(max((end - start) / step, 0)))
        if any(isinstance(value, float) for value in (start, end, step)):
            kwargs.setdefault("dtype", self.dtype)
        return torch.arange(start, end, step, device=self.device, **kwargs)

    def linspace(self, start: Any, end: Any, steps: int, **kwargs: Any) -> torch.Tensor:
        check_elements(steps)
        kwargs.setdefault("dtype", self.dtype)
        return torch.linspace(_number(start), _number(end), steps, device=self.device, **kwargs)

    def logspace(self, start: Any, end: Any, steps: int, **kwargs: Any) -> torch.Tensor:
        check_elements(steps)
        kwargs.setdefault("dtype", self.dtype)
        return torch.logspace(_number(start), _number(end), steps, device=self.device, **kwargs)

    def tensor(self, data: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(data, torch.Tensor):
            return data.detach().clone().to(**kwargs) if kwargs else data.detach().clone()
        # torch takes the tensors in a list apart, element by element.
        parts = sum(tensor.numel() for tensor in tensors(data))
        if parts > limits.MAX_ITEMS:
            raise TooLarge(f"a list of tensors with {parts:,} elements; write cat or stack")
        made = torch.tensor(data, **kwargs)
        if made.is_floating_point() and "dtype" not in kwargs:
            # Made again: what was rounded to the default dtype would stay rounded.
            made = torch.tensor(data, dtype=self.dtype)
        elif made.is_complex() and "dtype" not in kwargs:
            made = torch.tensor(
                data, dtype=torch.complex128 if self.dtype == torch.float64 else torch.complex64
            )
        return made.to(self.device)

    def tril_indices(self, row: int, col: int, offset: int = 0) -> torch.Tensor:
        check_size((row, col))
        return torch.tril_indices(row, col, offset, device=self.device)

    def triu_indices(self, row: int, col: int, offset: int = 0) -> torch.Tensor:
        check_size((row, col))
        return torch.triu_indices(row, col, offset, device=self.device)


def _shape(size: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The sizes given as ``zeros(3, 4)``, ``zeros((3, 4))`` or ``zeros(size=(3, 4))``."""
    given: Any = kwargs.pop("size", size)
    if not isinstance(given, (list, tuple)):
        raise TypeError("a size is a list or tuple of integers")
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    shape = []
    for length in given:
        number = _number(length)
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"a size must be an integer, not {number!r:.40}")
        if number < 0:
            raise ValueError(f"a size can't be negative: {number}")
        shape.append(number)
    if len(shape) > 64:
        raise TooLarge(f"a tensor of {len(shape)} axes; at most 64 are allowed")
    check_size(shape)
    return tuple(shape)


def _number(value: Any) -> Any:
    value = value.item() if isinstance(value, torch.Tensor) else value
    if not isinstance(value, (int, float)):
        raise TypeError(f"a number is needed here, not {kind_of(value)}")
    if isinstance(value, int) and value.bit_length() > limits.MAX_BITS:
        raise TooLarge(f"an integer of more than {limits.MAX_BITS} bits")
    return value
