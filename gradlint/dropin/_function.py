"""Evaluate the caller's function by moving the caller's own tensors.

Functions under test often read tensors that are not passed to them, such as parameters of a module
that are also among ``inputs``. So the caller's own tensors are moved in place, as torch does, and
restored whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.dropin._arguments import (
    Tensors,
    check_layouts,
    equal,
    outputs_of,
    tensors_in,
    unshared,
)
from gradlint.experiments.direction_projections import projections
from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.numerics.map import Projection
from gradlint.numerics.products import dense
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.random import GeneratorStates, generator_states
from gradlint.trace.sparse import Pattern, is_sparse

#: What an input is a view of is copied with it up to this many elements (heuristic: it takes
#: milliseconds).
LARGEST_STORAGE = 2**22


class RandomState:
    """The states of the caller's random generators before and after the first call.

    If every call starts from the state before, a function with dropout is one fixed function of its
    inputs. In the end the generators are left where a single call would have left them.

    Args:
        cuda: whether generators of CUDA devices are included.
    """

    def __init__(self, *, cuda: bool) -> None:
        self._cuda = cuda
        self._start = generator_states(cuda=cuda)
        self._end: GeneratorStates | None = None
        self._reseeded = False
        self._only_torch = False

    @property
    def drawn(self) -> bool:
        """Whether the first call drew random numbers."""
        return self._end is not None

    def after_first_call(self) -> None:
        """Remember the states if the call has drawn random numbers."""
        now = generator_states(cuda=self._cuda)
        if now != self._start:
            self._end = now
            self._only_torch = now.outside_torch == self._start.outside_torch

    def replay(self) -> None:
        """Restore the states from before the first call, if calls draw random numbers."""
        if self.drawn:
            self._start.restore(only_torch=self._only_torch)

    def reseeded(self) -> None:
        """Note that other code seeds the generators from now on."""
        self._reseeded = True

    def finish(self) -> None:
        """Leave the generators where one call leaves them."""
        if self._end is not None or self._reseeded:
            (self._end or self._start).restore()


class SparseInput:
    """A sparse input, given as the dense tensor that it stands for.

    Args:
        tensor: the input.
        masked: whether only the specified elements are inputs. If not, the function is evaluated at
            tensors of the same layout with every element specified, as in torch.

    Attributes:
        value: the dense tensor, detached.
        pattern: if masked, True for the specified elements; else None.
    """

    def __init__(self, tensor: torch.Tensor, masked: bool) -> None:
        like = tensor.detach()
        self.value = like.to_dense()
        template = like if masked else _fully_specified(like)
        if template.layout == torch.sparse_coo:
            template = template.coalesce()
        self._stored = Pattern(template)
        self.pattern: torch.Tensor | None = None
        if masked:
            ones = torch.ones_like(self._stored.values)
            self.pattern = dense(self._stored.filled(ones)) != 0

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        """A leaf of the input's layout with the elements of the dense ``value``."""
        return self._stored.filled(self._stored.picked(value)).requires_grad_()


def _fully_specified(like: torch.Tensor) -> torch.Tensor:
    """A tensor of the layout of ``like`` with every element specified."""
    ones = torch.ones(like.shape, dtype=like.dtype, device=like.device)
    if like.layout == torch.sparse_coo:
        return ones.to_sparse(like.sparse_dim())
    blocks = None
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        first = like.crow_indices() if like.layout == torch.sparse_bsr else like.ccol_indices()
        blocks = tuple(like.values().shape[first.dim() : first.dim() + 2])
    return ones.to_sparse(layout=like.layout, blocksize=blocks, dense_dim=like.dense_dim())


@dataclass(frozen=True)
class Knowledge:
    """What is known about a function beforehand; both are called after its first call.

    Args:
        rounding: returns the standard deviation of the rounding of an element of each output, if
            that is larger than one rounding.
        domain: returns, for each input, the projection that keeps directions inside its domain.
    """

    rounding: Callable[[], Sequence[float]] | None = None
    domain: Callable[[], Sequence[Projection | None]] | None = None


class Function:
    """``call`` on ``args``, as a map from its differentiable inputs to its outputs.

    Args:
        call: the caller's function.
        args: its arguments; tensors that require grad are the differentiable inputs. They may sit
            in nested lists, tuples and dicts.
        masked: whether only the specified elements of sparse inputs are inputs.
        knowledge: what is known about the function beforehand.

    Attributes:
        inputs: the differentiable inputs, each once, in the order of the arguments.
        positions: index into ``args`` of each.
        sparse: for each sparse input its :class:`SparseInput`; None for the others.
        values: their values, as dense copies that nothing changes.
        returned: the outputs at the sample, with their graph.
        differentiable: positions, among ``returned``, of those that require grad.
        forward_calls, backward_calls: how often each was called.
        changes_in_place: positions of the inputs that a call changes without autograd's knowledge.
        raised: the exception of the last evaluation away from the sample, if it raised.
        shapes_change: whether number, shape or dtype of the outputs differed away from the sample.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        masked: bool,
        knowledge: Knowledge | None = None,
    ) -> None:
        self.call = call
        self.knowledge = knowledge or Knowledge()
        self.args = unshared(args)
        self.inputs: list[torch.Tensor] = []
        self.positions: list[int] = []
        for position, arg in enumerate(self.args):
            for tensor in tensors_in(arg):
                if tensor.requires_grad and all(tensor is not known for known in self.inputs):
                    self.inputs.append(tensor)
                    self.positions.append(position)
        self.sparse = [SparseInput(t, masked) if is_sparse(t) else None for t in self.inputs]
        self.values = [
            tensor.detach().clone() if sparse is None else sparse.value
            for tensor, sparse in zip(self.inputs, self.sparse, strict=True)
        ]
        self._current: list[torch.Tensor | None] = list(self.values)
        self._random = RandomState(cuda=any(t.is_cuda for t in self.inputs))
        self.changes_in_place: list[int] = []
        self._unstable: set[int] = set()
        self.forward_calls = 0
        self.backward_calls = 0
        self.raised: Exception | None = None
        self.shapes_change = False
        self.returned: Tensors = ()
        self.differentiable: list[int] = []

    def start(self) -> Tensors:
        """Call the function at the sample; its outputs, with their graph.

        Raises:
            ValueError: an output is not a tensor, or a differentiable one is sparse.
        """
        versions = [tensor._version for tensor in self.inputs]
        returned = self._invoke()
        self._random.after_first_call()
        for place, (tensor, value, sparse) in enumerate(
            zip(self.inputs, self.values, self.sparse, strict=True)
        ):
            if sparse is None and not equal(tensor.detach(), value):
                self._current[place] = None
                self._unstable.add(place)
                if tensor._version == versions[place]:
                    self.changes_in_place.append(place)
        self.returned = outputs_of(returned)
        self.differentiable = [k for k, y in enumerate(self.returned) if y.requires_grad]
        check_layouts([self.returned[k] for k in self.differentiable])
        return self.returned

    @property
    def outputs(self) -> list[torch.Tensor]:
        """The differentiable outputs at the sample, with their graph."""
        return [self.returned[k] for k in self.differentiable]

    @property
    def floating(self) -> list[int]:
        """Positions of the outputs that could have a gradient."""
        return [k for k, y in enumerate(self.returned) if y.is_floating_point() or y.is_complex()]

    @property
    def stochastic(self) -> bool:
        """Whether the function draws random numbers (the same ones at every call here)."""
        return self._random.drawn

    def backward(
        self,
        outputs: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        *,
        batched: bool = False,
    ) -> list[torch.Tensor | None]:
        """VJP at the sample through ``outputs``, whose graph is kept.

        Args:
            batched: whether cotangents, and so gradients, have a leading batch axis.
        """
        self._place(self.values)
        self.backward_calls += 1
        return list(
            torch.autograd.grad(
                list(outputs),
                self.inputs,
                cotangents,
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=batched,
            )
        )

    def call_with(self, stand_ins: dict[int, torch.Tensor]) -> Tensors:
        """Outputs at the sample, with some of ``inputs`` replaced by ``stand_ins``."""
        self._place(self.values)
        swap = {id(self.inputs[place]): tensor for place, tensor in stand_ins.items()}
        return outputs_of(self._invoke(lambda tensor: swap.get(id(tensor), tensor)))

    def laid_out(self, place: int, value: torch.Tensor) -> torch.Tensor:
        """A copy of ``value`` in the memory layout of input ``place``: a view of a larger tensor
        stays one, because ``as_strided`` reaches beyond a view."""
        like = self.inputs[place]
        storage = like.untyped_storage().nbytes() // like.element_size()
        if like.numel() < storage <= LARGEST_STORAGE:
            whole = like.detach().as_strided((storage,), (1,), 0).clone()
            return whole.as_strided(like.shape, like.stride(), like.storage_offset()).copy_(value)
        made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
        return made.copy_(value)

    def evaluate(self, values: Sequence[torch.Tensor]) -> Tensors | None:
        """Outputs at ``values``; None if the function raises there.

        Raises:
            Exception: what the function raised, if it does not raise again when called again, since
                then the point is not the cause.
        """
        self._place(values)
        swap = self._swap(values)
        try:
            return outputs_of(self._invoke(swap))
        except Exception as error:
            self.raised = error
        self._place(values)
        try:
            self._invoke(swap)
        except Exception:
            return None
        raise self.raised

    def pull_beside(
        self, values: Sequence[torch.Tensor], wanted: Sequence[int], cotangents: Sequence[Any]
    ) -> list[torch.Tensor | None]:
        """VJP from a fresh call at ``values``; NaN if the function or its backward raises."""
        nothing: list[torch.Tensor | None] = [torch.full_like(v, float("nan")) for v in values]
        self._place(values)
        swap = self._swap(values)
        leaves = self.inputs if swap is None else [swap(tensor) for tensor in self.inputs]
        self.backward_calls += 1
        try:
            returned = outputs_of(self._invoke(swap))
            outputs = [returned[k] for k in wanted]
            grads = torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)
        except Exception as error:
            self.raised = error
            return nothing
        return [None if grad is None else dense(grad) for grad in grads]

    @property
    def filled_up(self) -> bool:
        """Whether a sparse input is unmasked, so that away from the sample the function gets it
        with every element specified, and may have another backward there than at the sample."""
        return any(sparse is not None and sparse.pattern is None for sparse in self.sparse)

    def domain(self) -> Sequence[Projection | None]:
        """For each input the projection that keeps directions inside its domain (symmetric ones for
        matrices of which the function reads only one triangle), or None."""
        if self.knowledge.domain is not None:
            return self.knowledge.domain()

        try:
            return projections(self.problem())
        except OpRaised:
            return [None] * len(self.inputs)

    def problem(self) -> Problem:
        """The function on copies of its arguments, as a problem like those of the rules."""
        self._place(self.values)
        self._random.reseeded()
        op = Op("function", "function", "callable", self.call)
        return Problem(op, Sample("inputs", "inputs", self.args))

    def replayed(self, *args: Any) -> Any:
        """Call the function itself, with the same random numbers at every call."""
        self.forward_calls += 1
        self._random.replay()
        return self.call(*args)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """In the body, other code may move the caller's tensors in place; they are restored."""
        self._place(self.values)
        try:
            yield
        finally:
            self._current = [None] * len(self.inputs)
            self._place(self.values)

    def restore(self) -> None:
        """Restore the caller's tensors, and leave the random generators where one call leaves
        them."""
        self._place(self.values)
        self._random.finish()

    def _invoke(self, swap: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Any:
        self.forward_calls += 1
        self._random.replay()
        args = self.args if swap is None else map_tensors(self.args, swap)
        return self.call(*args)

    def _place(self, values: Sequence[torch.Tensor]) -> None:
        for place, (tensor, value) in enumerate(zip(self.inputs, values, strict=True)):
            if self.sparse[place] is None and self._current[place] is not value:
                # Through .data, so that the tensor's version stays the same: the graph at the
                # sample remains valid, because its saved values are back whenever it is used.
                tensor.data.copy_(value)
                self._current[place] = None if place in self._unstable else value

    def _swap(
        self, values: Sequence[torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """A function that replaces sparse inputs by ones with ``values``; None without any."""
        made = {
            id(tensor): sparse.tensor(value)
            for tensor, value, sparse in zip(self.inputs, values, self.sparse, strict=True)
            if sparse is not None
        }
        return (lambda tensor: made.get(id(tensor), tensor)) if made else None
