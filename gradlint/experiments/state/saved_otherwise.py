"""A VJP with what backward needs saved in another way: recomputed under checkpointing, or packed
and unpacked by saved-tensor hooks."""

from __future__ import annotations

import random
from contextlib import suppress

import torch
from torch.utils.checkpoint import checkpoint

from gradlint.ops.backed import is_backed
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.random import common_random_numbers

Gradients = list["torch.Tensor | None"]

#: Places where a copy may lie, and bytes from one to the next (what GPUs' allocators align to):
#: so many that an address at which the op has seen a tensor before is met once in thousands.
COPY_PLACES, COPY_DISTANCE = 4096, 512

#: Draws the places, apart from the generators that ops draw from.
_places = random.Random(0)


def pull_checkpointed(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Gradients:
    """Gradients under ``torch.utils.checkpoint`` (non-reentrant): forward runs again in backward.

    Random numbers start from the problem's seed once: for the second forward checkpointing itself
    must bring them back.

    Args:
        cotangents: output name → cotangent of every differentiable output, in their order.

    Raises:
        OpRaised: when a forward or backward raises.
    """
    leaves = problem.leaves()
    problem.own_generators.reset()
    with common_random_numbers(problem.seed), torch.enable_grad():
        try:
            returned = checkpoint(
                lambda *given: tuple(problem.unwatched(given)), *leaves, use_reentrant=False
            )
        except Exception as error:
            raise OpRaised("forward", error) from error
        outputs = [t for t in returned if _differentiable(t)]
        return problem.backward(outputs, leaves, list(cotangents.values()))


def pull_recomputed(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Gradients:
    """As :func:`pull_checkpointed`, without the seconds that ``torch.utils.checkpoint`` takes to
    import the compiler: nothing is saved, and what backward asks for comes from a second forward.

    Raises:
        OpRaised: when a forward or backward raises, when a saved tensor is asked for twice, or is
            not there, or of another shape or dtype the second time.
    """
    leaves = problem.leaves()
    problem.own_generators.reset()
    with common_random_numbers(problem.seed), torch.enable_grad():
        again = _SavedAgain(problem, leaves)
        try:
            with torch.autograd.graph.saved_tensors_hooks(again.pack, again.unpack):
                returned = problem.unwatched(leaves)
        except Exception as error:
            raise OpRaised("forward", error) from error
        outputs = [t for t in returned if _differentiable(t)]
        return problem.backward(outputs, leaves, list(cotangents.values()))


class _AllSavedAgain(Exception):
    """Everything that is needed has been saved again."""


class _SavedAgain:
    """Saved tensors by the order in which they are saved, made anew when one is asked for."""

    def __init__(self, problem: Problem, leaves: list[torch.Tensor]) -> None:
        self._problem = problem
        self._leaves = leaves
        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._kinds: list[tuple[torch.Size, torch.dtype]] = []
        self._found: list[torch.Tensor | None] | None = None

    def pack(self, tensor: torch.Tensor) -> int:
        self._kinds.append((tensor.shape, tensor.dtype))
        return len(self._kinds) - 1

    def unpack(self, place: int) -> torch.Tensor:
        if self._found is None:
            self._found = self._recompute()
        if place >= len(self._found):
            raise RuntimeError("forward saves fewer tensors when it runs again")
        tensor, self._found[place] = self._found[place], None
        if tensor is None:
            raise RuntimeError("a saved tensor is unpacked twice")
        if (tensor.shape, tensor.dtype) != self._kinds[place]:
            raise RuntimeError("forward saves another kind of tensor when it runs again")
        return tensor

    def _recompute(self) -> list[torch.Tensor | None]:
        found: list[torch.Tensor | None] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            found.append(tensor.detach())
            if len(found) == len(self._kinds):
                raise _AllSavedAgain
            return tensor

        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with torch.random.fork_rng(), torch.enable_grad(), hooks, suppress(_AllSavedAgain):
            torch.set_rng_state(self._cpu)
            if self._cuda:
                torch.cuda.set_rng_state_all(self._cuda)
            self._problem.unwatched(self._leaves)
        return found


def pull_packed(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Gradients:
    """Gradients under saved-tensor hooks that keep copies.

    Raises:
        OpRaised: when forward or backward raises.
    """
    hooks = torch.autograd.graph.saved_tensors_hooks(_copied, lambda copy: copy)
    with hooks:
        leaves, outputs = problem.linearize()
    return problem.pull_from(outputs, leaves, cotangents)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy where no other tensor has lain: allocators hand out again what an earlier call's
    tensors let go, and an op that goes by addresses would find there what that call left."""
    if not is_backed(tensor):
        return tensor  # freed, to be filled again before it is used: nothing to copy
    value = tensor.detach()
    plain = type(value) is torch.Tensor and value.layout == torch.strided and not value.is_nested
    if not plain or value.is_quantized or value.device.type == "meta":
        return value.clone()
    size, start = (
        value.numel() * value.element_size(),
        COPY_DISTANCE * _places.randrange(COPY_PLACES),
    )
    room = torch.empty(size + COPY_PLACES * COPY_DISTANCE, dtype=torch.uint8, device=value.device)
    place = room.untyped_storage()[start : start + size]
    strides = torch.empty_like(value, device="meta").stride()
    copy = torch.empty(0, dtype=value.dtype, device=value.device)
    return copy.set_(place, 0, value.shape, strides).copy_(value)


def _differentiable(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
