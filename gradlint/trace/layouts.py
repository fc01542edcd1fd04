"""The same values in other memory layouts.

The layout of a tensor is not part of its value, but an operator that reads memory without regard to
strides or offsets returns something else for another layout. Gaps in memory are filled with NaN, so
that reading them shows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

#: Elements in the gap after a row (heuristic: any width separates the rows).
GAP = 3


def relaid(tensor: torch.Tensor, layout: str) -> torch.Tensor | None:
    """``tensor`` with the same shape and values in ``layout``, detached; None if that layout is the
    contiguous one for this shape, or cannot represent the values.

    Args:
        tensor: strided, any dtype and device.
        layout: one of :data:`LAYOUTS`.
    """
    if tensor.layout != torch.strided or tensor.is_nested:
        return None
    return LAYOUTS[layout](tensor.detach())


def _transposed(tensor: torch.Tensor) -> torch.Tensor | None:
    if sum(size > 1 for size in tensor.shape) < 2:
        return None
    axes = tuple(range(tensor.dim()))[::-1]
    return tensor.permute(axes).contiguous().permute(axes)


def _padded(tensor: torch.Tensor) -> torch.Tensor | None:
    if tensor.dim() < 1 or not tensor.numel() or sum(s > 1 for s in tensor.shape[:-1]) < 1:
        return None
    wide = _filled((*tensor.shape[:-1], tensor.shape[-1] + GAP), tensor)
    return wide.narrow(-1, 1, tensor.shape[-1]).copy_(tensor)


def _strided(tensor: torch.Tensor) -> torch.Tensor | None:
    if tensor.dim() < 1 or tensor.shape[-1] < 2 or not tensor.numel():
        return None
    wide = _filled((*tensor.shape[:-1], 2 * tensor.shape[-1]), tensor)
    return wide[..., ::2].copy_(tensor)


def _offset(tensor: torch.Tensor) -> torch.Tensor | None:
    if not tensor.numel():
        return None
    flat = _filled((tensor.numel() + 1,), tensor)
    return flat[1:].view(tensor.shape).copy_(tensor)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor | None:
    if tensor.dim() not in (4, 5) or not tensor.numel():
        return None
    form = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    found = tensor.contiguous(memory_format=form)
    return None if found.is_contiguous() else found


def _expanded(tensor: torch.Tensor) -> torch.Tensor | None:
    if tensor.numel() < 2:
        return None
    flat = tensor.reshape(-1)
    if not bool((tensor == flat[0]).all()):
        return None
    # Code that reads beyond the only element finds NaN, not unrelated memory.
    wide = _filled((tensor.numel(),), tensor)
    wide[0] = flat[0]
    return wide[0].expand(tensor.shape)


#: Layouts by name. "expanded" (stride 0) is possible for constant tensors only.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "transposed": _transposed,
    "padded": _padded,
    "strided": _strided,
    "offset": _offset,
    "channels_last": _channels_last,
    "expanded": _expanded,
}

#: A description of each layout.
LAYOUT_WORDS = {
    "transposed": "transposed in memory",
    "padded": "a slice of a wider buffer",
    "strided": "every second element of a buffer",
    "offset": "contiguous at storage offset 1",
    "channels_last": "channels_last",
    "expanded": "expanded (stride 0)",
}


def _filled(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """A contiguous buffer of values that must not be read: NaN, True, or, for integers, the first
    element of ``like``."""
    if like.is_floating_point() or like.is_complex():
        return like.new_full(shape, float("nan"))
    if like.dtype == torch.bool:
        return like.new_ones(shape)
    # Integers may be indices: an arbitrary one could crash the process, so gaps repeat a valid one.
    return like.reshape(-1)[:1].expand(shape).clone(memory_format=torch.contiguous_format)
