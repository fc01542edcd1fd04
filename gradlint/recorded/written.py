"""Arguments of a recorded call as plain data and arrays, and the files that hold them.

A file holds two lengths, a header in JSON, and the bytes of arrays, as messages of
``gradlint.ops.bare`` do. ``gradlint.recorded.read`` reads them. It is there whole or not at all, so
that a process may end at any moment.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import struct
from collections.abc import Sequence
from typing import Any

#: Arguments of a call that are kept, also within lists and dicts.
MOST_LEAVES = 64
#: Elements of a tensor that are kept; of a larger one, a block of as many.
MOST_ELEMENTS = 1 << 14
#: Elements of each axis that a block keeps, as far as there are as many (fewer than 15 axes).
LEAST = 2
#: Elements up to which the least and the largest one are looked for (about 10 ms).
MOST_READ = 1 << 24
#: Characters of a text among the arguments, digits of an integer, and characters of what is shown
#: of another object.
LONGEST_TEXT, MOST_DIGITS, LONGEST_SHOWN = 1000, 100, 80
#: Lists within lists that are read.
DEEPEST = 8

#: Dtypes of tensors whose elements are kept.
_KEPT = {
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
}


def write_file(
    path: str, header: dict[str, Any], arrays: Sequence[Any] = (), bodies: Sequence[bytes] = ()
) -> None:
    """One file, which is there whole or not at all.

    Args:
        path: it must not exist.
        header: what JSON can hold.
        arrays: dtype and shape of each array.
        bodies: the bytes of each.
    """
    text = json.dumps({**header, "arrays": list(arrays)}).encode()
    body = b"".join(bodies)
    fd = os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(struct.pack(">IQ", len(text), len(body)) + text + body)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    os.rename(path + ".part", path)


class Writer:
    """Arguments as plain data, and arrays."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensors: list[dict[str, Any]] = []
        self.arrays: list[Any] = []
        self.bodies: list[bytes] = []
        self.known: dict[int, int] = {}
        self.leaves = 0

    def value(self, value: Any, depth: int = 0) -> list[Any]:
        """A value as JSON holds it: its kind, and what it is."""
        torch = self.torch
        self.leaves += 1
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return ["tensor", self.tensor(value)]
        if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()
            kind = type(value)
        if kind is torch.dtype:
            return ["dtype", str(value).removeprefix("torch.")]
        if kind is torch.device:
            return ["device", str(value)]
        if isinstance(value, (list, tuple, dict)) and depth < DEEPEST:
            return self.group(value, depth)
        return _plain(value) or ["object", _shown(value)]

    def group(self, value: Any, depth: int) -> list[Any]:
        """A list, a tuple or a dict; of one with too many entries the first ones."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["object", _shown(value)]
        if isinstance(value, dict):
            entries = []
            for key, item in value.items():
                if self.leaves >= MOST_LEAVES:
                    break
                name = key if isinstance(key, (str, int)) else str(key)
                entries.append([name, self.value(item, depth + 1)])
            return ["dict", entries, len(value) - len(entries)]
        kept = []
        for item in value:
            if self.leaves >= MOST_LEAVES:
                break
            kept.append(self.value(item, depth + 1))
        return ["list" if isinstance(value, list) else "tuple", kept, len(value) - len(kept)]

    def tensor(self, tensor: Any) -> int:
        """The position of a tensor in the list of tensors."""
        if id(tensor) in self.known:
            return self.known[id(tensor)]
        torch = self.torch
        position = self.known[id(tensor)] = len(self.tensors)
        strided = tensor.layout is torch.strided
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        entry = {
            "shape": [int(size) for size in tensor.shape],
            "stride": list(tensor.stride()) if strided else None,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": tensor.device.type,
            "layout": str(tensor.layout).removeprefix("torch."),
            "requires_grad": tensor.requires_grad,
            "type": type(tensor).__name__,
        }
        self.tensors.append(entry)
        if plain and not self.hidden(tensor) and (strided or tensor.numel() <= MOST_ELEMENTS):
            self.values(entry, tensor.detach())
        return position

    def hidden(self, tensor: Any) -> bool:
        """Whether a tensor has no values of its own, or they can't be read now."""
        torch = self.torch
        if tensor.is_meta or tensor.is_nested:
            return True
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return True
        return bool(tensor.is_cuda and torch.cuda.is_current_stream_capturing())

    def values(self, entry: dict[str, Any], tensor: Any) -> None:
        """The elements of a tensor, or a block of them and between what they all lie."""
        torch = self.torch
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        shape = list(tensor.shape)
        block = block_of(shape)
        part = tensor
        for axis, size in enumerate(block):
            part = part.narrow(axis, 0, size)
        part = part.resolve_conj().resolve_neg().cpu().contiguous()
        if block != shape:
            entry["block"] = block
            ordered = not tensor.is_complex() and tensor.dtype is not torch.bool
            if ordered and tensor.numel() <= MOST_READ:
                entry["range"] = [float(end) for end in torch.aminmax(tensor)]
        if entry["dtype"] in _KEPT:
            count = part.numel() * part.element_size()
            entry["array"] = len(self.arrays)
            self.arrays.append([entry["dtype"], block])
            self.bodies.append(ctypes.string_at(part.data_ptr(), count) if count else b"")


def block_of(shape: Sequence[int]) -> list[int]:
    """The sizes of what is kept of a tensor: the last axes whole as far as they fit, but so that
    no axis shrinks to one element, as if it were broadcast."""
    block: list[int] = []
    rest = 1
    for axis in reversed(range(len(shape))):
        ahead = math.prod(min(size, LEAST) for size in shape[:axis])
        block.insert(0, min(shape[axis], max(1, MOST_ELEMENTS // max(rest * ahead, 1))))
        rest *= block[0]
    return block


def _plain(value: Any) -> list[Any] | None:
    """A number or a text that JSON can hold."""
    if value is None or isinstance(value, bool):
        return ["plain", value]
    if isinstance(value, int):
        return ["plain", int(value)] if abs(value) < 10**MOST_DIGITS else None
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if isinstance(value, complex):
        return ["complex", [value.real.hex(), value.imag.hex()]]
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return ["plain", str(value)]
    return None


def _shown(value: Any) -> str:
    """The type of an object that can't be kept; of a function or a class its name too."""
    kind = type(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return f"{kind.__name__} {getattr(value, '__module__', '')}.{name}"[:LONGEST_SHOWN]
    return f"{kind.__module__}.{kind.__qualname__}".replace("builtins.", "")[:LONGEST_SHOWN]
