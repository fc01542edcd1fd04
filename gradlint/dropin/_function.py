"""The caller's function at the caller's own tensors.

Functions under test often read tensors that they were not passed: a module's parameters, say, that
are also among ``inputs``. So the caller's own tensors are moved, in place as torch does, and put
back whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from gradlint.dropin._random_state import RandomState
from gradlint.dropin._sparse import SparseInput, is_sparse
from gradlint.inputs._sample import map_tensors
from gradlint.numerics._map import Map, Projection
from gradlint.numerics._products import dense

if TYPE_CHECKING:
    from gradlint.trace._problem import Problem

Tensors = tuple[torch.Tensor, ...]


class Function:
    """``call`` on ``args``, as a map from its differentiable inputs to its outputs.

    Args:
        call: the caller's function.
        args: its arguments; tensors that require grad are the differentiable inputs. They may sit
            in nested lists, tuples and dicts.
        masked: whether only the specified elements of sparse inputs are inputs.

    Attributes:
        inputs: the differentiable inputs, each once, in the order of the arguments.
        positions: index into ``args`` of each.
        values: their values, dense copies that nothing changes.
        forward_calls, backward_calls: how often each was called.
        changes_in_place: positions of the inputs that a call changes without autograd's knowledge.
        raised: what the last evaluation beside the sample raised, if it did.
        shapes_change: whether outputs had another number, shape or dtype beside the sample.
    """

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...], *, masked: bool) -> None:
        self.call = call
        self.args = _unshared(args)
        self.inputs: list[torch.Tensor] = []
        self.positions: list[int] = []
        for position, arg in enumerate(self.args):
            for tensor in tensors_in(arg):
                if tensor.requires_grad and all(tensor is not known for known in self.inputs):
                    self.inputs.append(tensor)
                    self.positions.append(position)
        self._sparse = [SparseInput(t, masked) if is_sparse(t) else None for t in self.inputs]
        self.values = [
            tensor.detach().clone() if sparse is None else sparse.value
            for tensor, sparse in zip(self.inputs, self._sparse, strict=True)
        ]
        self._current: list[torch.Tensor | None] = list(self.values)
        self._random = RandomState(cuda=any(t.is_cuda for t in self.inputs))
        self.changes_in_place: list[int] = []
        self._unstable: set[int] = set()
        self.forward_calls = 0
        self.backward_calls = 0
        self.raised: Exception | None = None
        self.shapes_change = False
        self._returned: Tensors = ()
        self.differentiable: list[int] = []

    # -- at the sample --------------------------------------------------------------------------

    def start(self) -> Tensors:
        """Call the function at the sample; its outputs, with their graph.

        Raises:
            ValueError: an output is no tensor, or a differentiable one is sparse.
        """
        versions = [tensor._version for tensor in self.inputs]
        returned = self._invoke()
        self._random.after_first_call()
        for place, (tensor, value, sparse) in enumerate(
            zip(self.inputs, self.values, self._sparse, strict=True)
        ):
            if sparse is None and not _equal(tensor.detach(), value):
                self._current[place] = None
                self._unstable.add(place)
                if tensor._version == versions[place]:
                    self.changes_in_place.append(place)
        self._returned = outputs_of(returned)
        self.differentiable = [k for k, y in enumerate(self._returned) if y.requires_grad]
        _check_layouts([self._returned[k] for k in self.differentiable])
        return self._returned

    @property
    def outputs(self) -> list[torch.Tensor]:
        """The differentiable outputs at the sample, with their graph."""
        return [self._returned[k] for k in self.differentiable]

    @property
    def floating(self) -> list[int]:
        """Positions of the outputs that could have a gradient."""
        return [k for k, y in enumerate(self._returned) if y.is_floating_point() or y.is_complex()]

    @property
    def stochastic(self) -> bool:
        """Whether the function draws random numbers: the same ones at every call here."""
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
            batched: whether cotangents, and so gradients, have a leading axis of a batch.
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
        """Outputs at the sample, other tensors standing in for some of ``inputs``."""
        self._place(self.values)
        swap = {id(self.inputs[place]): tensor for place, tensor in stand_ins.items()}
        return outputs_of(self._invoke(lambda tensor: swap.get(id(tensor), tensor)))

    def laid_out(self, place: int, value: torch.Tensor) -> torch.Tensor:
        """A copy of ``value`` in the memory layout of input ``place``."""
        like = self.inputs[place]
        made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
        return made.copy_(value)

    # -- anywhere ---------------------------------------------------------------------------------

    def map(self, chosen: Sequence[int] | None = None) -> Map:
        """The map that is judged.

        Args:
            chosen: positions of the outputs that count; default the differentiable ones.
        """
        wanted = self.differentiable if chosen is None else list(chosen)
        at_sample = [self._returned[k] for k in wanted]
        point = self.values
        here = self._returned
        if any(sparse is not None and sparse.pattern is None for sparse in self._sparse):
            # Where every element is specified the function may be another one (a mean over the
            # specified ones, say): differences are taken there, as in torch.
            here = self._evaluate(point) or here
        outputs = [dense(here[k].detach()).clone() for k in wanted]
        endless = [torch.isinf(y) for y in outputs]
        for y, inf in zip(outputs, endless, strict=True):
            y[inf] = 0.0
        any_endless = any(bool(inf.any()) for inf in endless)

        def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
            returned = self._evaluate(values)
            if returned is None or len(returned) != len(self._returned):
                self.shapes_change = self.shapes_change or returned is not None
                return None
            found = [dense(returned[k].detach()) for k in wanted]
            if any(
                a.shape != b.shape or a.dtype != b.dtype
                for a, b in zip(found, outputs, strict=True)
            ):
                self.shapes_change = True
                return None
            if any_endless:
                return _constants_out(found, endless)
            return [self._own(y) for y in found]

        def pull_at(
            values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
        ) -> list[torch.Tensor | None]:
            attached = [k for k, y in enumerate(at_sample) if y.requires_grad]
            if not attached:
                return [None] * len(values)
            chosen_vs = [cotangents[k] for k in attached]
            if any_endless:
                chosen_vs = [cotangents[k] * ~endless[k] for k in attached]
            if all(a is b for a, b in zip(values, point, strict=True)):
                grads = self.backward([at_sample[k] for k in attached], chosen_vs)
                return [None if grad is None else dense(grad) for grad in grads]
            return self._pull_beside(values, [wanted[k] for k in attached], chosen_vs)

        return Map(
            point,
            outputs,
            evaluate,
            pull_at,
            project=self._projections(),
            twin=self._twin if wanted == self.differentiable else None,
        )

    def problem(self) -> Problem:
        """The function on copies of its arguments, as the rules see it."""
        from gradlint.inputs._sample import Sample
        from gradlint.targets._op import Op
        from gradlint.trace._problem import Problem

        self._place(self.values)
        self._random.reseeded()
        op = Op("function", "function", "callable", self.call)
        return Problem(op, Sample("inputs", "inputs", self.args))

    def replayed(self, *args: Any) -> Any:
        """The function itself, drawing the same random numbers at every call."""
        self.forward_calls += 1
        self._random.replay()
        return self.call(*args)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Lets others move the caller's tensors in place; they are put back afterwards."""
        self._place(self.values)
        try:
            yield
        finally:
            self._current = [None] * len(self.inputs)
            self._place(self.values)

    def restore(self) -> None:
        """Put the caller's tensors back as they were, and the random generators to where one call
        leaves them."""
        self._place(self.values)
        self._random.finish()

    # -- inner workings ---------------------------------------------------------------------------

    def _invoke(self, swap: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Any:
        self.forward_calls += 1
        self._random.replay()
        args = self.args if swap is None else map_tensors(self.args, swap)
        return self.call(*args)

    def _place(self, values: Sequence[torch.Tensor]) -> None:
        for place, (tensor, value) in enumerate(zip(self.inputs, values, strict=True)):
            if self._sparse[place] is None and self._current[place] is not value:
                # Not through autograd, and without a new version: the graph at the sample stays
                # valid, since the values it saved are back whenever it is used.
                tensor.data.copy_(value)
                self._current[place] = None if place in self._unstable else value

    def _evaluate(self, values: Sequence[torch.Tensor]) -> Tensors | None:
        """Outputs at ``values``; None where the function raises there.

        Raises:
            Exception: what the function raised, where it does not raise it again when called
                again: that is no matter of the point.
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

    def _swap(
        self, values: Sequence[torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """How sparse inputs are replaced by tensors made from ``values``, if there are any."""
        made = {
            id(tensor): sparse.tensor(value)
            for tensor, value, sparse in zip(self.inputs, values, self._sparse, strict=True)
            if sparse is not None
        }
        return (lambda tensor: made.get(id(tensor), tensor)) if made else None

    def _pull_beside(
        self, values: Sequence[torch.Tensor], wanted: Sequence[int], cotangents: Sequence[Any]
    ) -> list[torch.Tensor | None]:
        """VJP from a fresh call; NaN where the function or its backward raises there."""
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

    def _twin(self) -> Map | None:
        """The same in float64; None where that is what it is, or where the function refuses."""
        from gradlint.rules._maps import float64_twin

        if all(value.dtype in (torch.float64, torch.complex128) for value in self.values):
            return None
        return float64_twin(self.problem())

    def _projections(self) -> list[Projection | None] | None:
        patterns = [None if sparse is None else sparse.pattern for sparse in self._sparse]
        if all(pattern is None for pattern in patterns):
            return None
        return [None if pattern is None else partial(torch.mul, pattern) for pattern in patterns]

    def _own(self, output: torch.Tensor) -> torch.Tensor:
        """``output``, copied if it is a view of what is moved or returned again."""
        storage = output.untyped_storage().data_ptr()
        shared = (*self.inputs, *self._returned)
        if any(is_dense(t) and t.untyped_storage().data_ptr() == storage for t in shared):
            return output.clone()
        return output


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    map_tensors(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Lists and tuples as tuples, anything else in a tuple of one, as torch does."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def outputs_of(returned: Any) -> Tensors:
    """The tensors that a function returned.

    Raises:
        ValueError: something in it is no tensor.
    """
    outputs = as_tuple(returned)
    for place, output in enumerate(outputs):
        if not isinstance(output, torch.Tensor):
            raise ValueError(
                f"output {place} of the function is no tensor but "
                f"{'None' if output is None else 'a ' + type(output).__name__}: gradcheck needs a "
                "function that returns a tensor or a tuple of tensors; wrap it in one that "
                "returns those to be checked, such as `lambda *args: fn(*args)[0]`"
            )
    return outputs


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether elements lie in one strided storage."""
    return tensor.layout == torch.strided and not tensor.is_nested


def _constants_out(
    outputs: Sequence[torch.Tensor], endless: Sequence[torch.Tensor]
) -> list[torch.Tensor] | None:
    """``outputs`` with zeros where they are infinite at the sample; None where one of those is
    finite now, and so no constant (a mask's −∞ is one)."""
    if any(not bool(torch.isinf(y[inf]).all()) for y, inf in zip(outputs, endless, strict=True)):
        return None
    return [
        torch.where(inf, torch.zeros_like(y), y) for y, inf in zip(outputs, endless, strict=True)
    ]


def _check_layouts(outputs: Sequence[torch.Tensor]) -> None:
    for output in outputs:
        kind = "Sparse" if is_sparse(output) else "MKLDNN"
        if not is_dense(output) and not output.is_nested:
            raise ValueError(
                f"{kind} output is not supported at gradcheck yet. "
                "Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
            )


def _equal(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    if torch.equal(tensor, value):
        return True
    return bool(((tensor == value) | ((tensor != tensor) & (value != value))).all())


def _unshared(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args`` with copies of those tensors that share memory with another: moving one of them
    must not move the other."""
    tensors = [t for t in dict.fromkeys(tensors_in(args)) if is_dense(t) and t.numel()]
    owners: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage().data_ptr()
        owners[storage] = owners.get(storage, 0) + 1
    if all(count == 1 for count in owners.values()):
        return args

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        if not is_dense(tensor) or owners.get(tensor.untyped_storage().data_ptr(), 0) < 2:
            return tensor
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    changed: tuple[Any, ...] = map_tensors(args, separate)
    return changed
