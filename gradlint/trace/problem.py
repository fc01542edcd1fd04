"""An op bound to a sample: the function that rules differentiate and perturb.

A :class:`Problem` hides the differences between kinds of operator (a Function, a module with
parameters, nested arguments, in-place ops, random numbers) behind two methods: ``forward`` at any
values of the differentiable inputs, and ``pull``, a VJP from a fresh forward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.numerics.products import equal
from gradlint.ops.backed import is_backed
from gradlint.ops.phase import phase
from gradlint.ops.vjp import accumulated, arrivals, refuses_grad, settled, taken, vjp
from gradlint.trace._binding import Relay
from gradlint.trace._calls import Calls, Casts
from gradlint.trace.op_io import Input, OpRaised, Output, outputs_in
from gradlint.trace.random import common_random_numbers, generator_states


class Problem(Calls):
    """``op`` on ``sample``, in the sample's dtypes and on its device.

    Args:
        op: the operator.
        sample: its arguments; tensors that require grad are the differentiable inputs.
        seed: random numbers drawn inside the op come from this seed at every call, so that a
            stochastic op is one fixed function (common random numbers).

    Attributes:
        draws: whether forward draws random numbers; None until this is determined.
        only_backward: whether the op raised under ``torch.autograd.grad``, so that
            ``.backward()`` is used instead.
        fills_grad: whether backward leaves gradients in ``.grad`` of the inputs; None until it ran.
        written_grads: positions of inputs to whose ``.grad`` backward writes by itself, beside the
            gradient that it returns.
    """

    def __init__(self, op: Op, sample: Sample, *, seed: int = 0) -> None:
        super().__init__(op, sample, seed)
        self.draws: bool | None = None
        self.only_backward = False
        self.fills_grad: bool | None = None
        self.written_grads: set[int] = set()
        self._needs_graph: bool | None = None  # unknown until a call without a graph was made
        self._in_graph: list[Output] | None = None  # what forward returned with one, until compared
        self._compared = False  # whether it was; at other samples it need not be

    def in_float64(self) -> Problem | None:
        """The same op at the same values, with every floating tensor in float64; None if all
        differentiable inputs are in float64 already."""
        wide = (torch.float64, torch.complex128)
        if all(item.value.dtype in wide for item in self.inputs):
            return None
        return self.in_dtype(torch.float64)

    def in_dtype(self, dtype: torch.dtype) -> Problem:
        """The same op at the same values, with every floating tensor in ``dtype``."""
        device = str(next(item.value.device for item in self.inputs))
        found = self.at(self.sample.converted(dtype, device))
        found.zeroed = self.zeroed
        # Parameters of a module were rounded to the low dtype; the twin starts from those values.
        found.binding.take_values(self.binding)
        return found

    def exact(self) -> tuple[Problem, torch.dtype] | None:
        """The same op at the same values in float64, without its casts to 16 bits, and the coarsest
        dtype that it casts to; None if it has no such casts, cannot be watched, or returns the same
        with them: what forward only keeps in 16 bits makes backward coarse, not the function."""
        coarse, watched = self.in_float64() or self.at(self.sample), Casts()
        found = self.in_float64() or self.at(self.sample)
        found.zeroed = self.zeroed
        found.in_place = self.in_place
        found.uncast = True
        try:
            with watched:
                outputs = coarse.forward()
            if watched.coarsest is None or _same(outputs, found.forward()):
                return None
        except OpRaised:
            return None
        return found, watched.coarsest

    def at(self, sample: Sample) -> Problem:
        """The same op on another sample, drawing the same random numbers."""
        found = Problem(self.op, sample, seed=self.seed)
        found.preserve_state = self.preserve_state
        found.own_generators = self.own_generators
        found.only_backward = self.only_backward
        found.fills_grad = self.fills_grad
        found.needs_graph_as(self)
        found.surroundings = self.surroundings
        found.patience = self.patience
        return found

    def needs_graph_as(self, other: Problem) -> None:
        """Take over what is known of the same op at other arguments: whether forward computes
        something else without a graph. It is not asked again."""
        self._needs_graph = other._needs_graph or None
        self._compared = True

    def through(self, transform: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Problem:
        """The same op at the same values, called through a program transform.

        Args:
            transform: takes the function that calls the op with (positional arguments, keyword
                arguments, state of its module), and returns one to be called instead.
        """
        found = self.at(self.sample)
        found.zeroed = self.zeroed
        found.in_place = self.in_place
        found.binding.invoke = transform(self.binding.invoke)
        return found

    @property
    def inputs(self) -> list[Input]:
        """The differentiable inputs: tensors of the sample, then parameters of a module."""
        return self.binding.inputs

    @property
    def parameters(self) -> list[Input]:
        """The differentiable inputs that are parameters of a module."""
        return self.inputs[len(self.inputs) - len(self.binding.parameters) :]

    def put(self, values: Mapping[int, torch.Tensor]) -> None:
        """Replace the sample's own values of some differentiable inputs, given by position."""
        self.binding.put(values)

    def values(self) -> list[torch.Tensor]:
        """The sample's own values of the differentiable inputs, detached."""
        return [item.value for item in self.inputs]

    def forward(
        self, values: Sequence[torch.Tensor] | None = None, *, grad: bool = False
    ) -> list[Output]:
        """Outputs at ``values`` (default: the sample's own). Without ``grad`` no graph is made,
        unless forward needs one, or computes something else without one."""
        if not grad and self._in_graph is not None:
            # It may ask its arguments whether they require grad.
            known, self._in_graph, self._compared = self._in_graph, None, True
            own = self.forward()
            self._needs_graph = self._needs_graph or _differ(own, known)
            if values is None and not self._needs_graph:
                return own
        point = self.values() if values is None else values
        grad = grad or bool(self._needs_graph)
        try:
            with torch.set_grad_enabled(grad):
                outputs = self._call(self._leaves(point, grad))
        except OpRaised:
            if grad or self._needs_graph is not None:
                raise
            # Hooks, and gradients taken inside, need a graph.
            with torch.enable_grad():
                outputs = self._call(self._leaves(point, True))
            self._needs_graph = True
        if self._needs_graph is None and not grad:
            self._needs_graph = False
        return outputs

    def linearize(
        self,
        values: Sequence[torch.Tensor] | None = None,
        *,
        requires_grad: Sequence[bool] | None = None,
    ) -> tuple[list[torch.Tensor], list[Output]]:
        """Fresh leaves and the outputs connected to them by a graph."""
        leaves = self._leaves(self.values() if values is None else values, True, requires_grad)
        with torch.enable_grad():
            outputs = self._call(leaves)
        if values is None and requires_grad is None and not self._compared:
            # Detached: what the graph holds lives as long as the op's caller keeps it.
            self._in_graph = [replace(item, value=item.value.detach()) for item in outputs]
        return leaves, outputs

    def leaves(
        self,
        values: Sequence[torch.Tensor] | None = None,
        requires_grad: Sequence[bool] | None = None,
    ) -> list[torch.Tensor]:
        """Fresh leaves for :meth:`connect`, one per input; all require grad by default."""
        point = self.values() if values is None else values
        flags = requires_grad or [True] * len(point)
        return [
            value.detach().clone().requires_grad_(flag)
            for value, flag in zip(point, flags, strict=True)
        ]

    def connect(
        self, leaves: Sequence[torch.Tensor], constants: Relay | None = None
    ) -> list[Output]:
        """Outputs connected to the caller's own ``leaves`` by a graph; ``constants`` changes the
        memory layout of the tensors that are not inputs."""
        passed = [self.binding.as_passed(k, leaf) for k, leaf in enumerate(leaves)]
        with torch.enable_grad():
            return self._call(passed, constants)

    def pull(
        self,
        cotangents: dict[str, torch.Tensor],
        values: Sequence[torch.Tensor] | None = None,
    ) -> list[torch.Tensor | None]:
        """VJP from a fresh forward: one gradient (or None) per input.

        Args:
            cotangents: output name → cotangent of that output's shape; others get none.
            values: the point; by default the sample's own.
        """
        leaves, outputs = self.linearize(values)
        return self.pull_from(outputs, leaves, cotangents)

    def pull_from(
        self,
        outputs: Sequence[Output],
        leaves: Sequence[torch.Tensor],
        cotangents: Mapping[str, torch.Tensor],
        **options: bool,
    ) -> list[torch.Tensor | None]:
        """:meth:`backward` from the differentiable ``outputs`` that have a cotangent."""
        chosen = [item for item in outputs if item.name in cotangents and item.differentiable]
        return self.backward(chosen, leaves, [cotangents[item.name] for item in chosen], **options)

    def backward(
        self,
        outputs: Sequence[Output] | Sequence[torch.Tensor],
        leaves: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        *,
        create_graph: bool = False,
        retain_graph: bool | None = None,
        as_given: bool = False,
    ) -> list[torch.Tensor | None]:
        """``torch.autograd.grad`` with ``allow_unused``; the op's exceptions become OpRaised.

        The op gets copies of ``cotangents``, or, if ``as_given``, the tensors themselves, because a
        copy has another layout.
        """
        tensors = [item.value if isinstance(item, Output) else item for item in outputs]
        self.backward_calls += 1
        if not tensors or not leaves:
            return [None] * len(leaves)
        given = [c if as_given or c.requires_grad else c.detach().clone() for c in cotangents]
        found = None
        with phase("backward"), self._around():
            try:
                if not self.only_backward or create_graph:
                    with self._limited(leaves):
                        found = self._returned(tensors, leaves, given, create_graph, retain_graph)
            except Exception as error:
                if create_graph or not refuses_grad(error):
                    raise OpRaised("backward", error) from error
                self.only_backward = True
            try:
                if found is None:
                    with arrivals(leaves) as came:
                        left = self.binding.during_backward(
                            lambda: accumulated(tensors, leaves, given, retain_graph=retain_graph)
                        )
                    found, written = settled([None] * len(leaves), left, came)
                    self.written_grads |= written
            except Exception as error:
                raise OpRaised("backward", error) from error
        return [self.binding.picked(k, grad) for k, grad in enumerate(found)]

    def _returned(
        self,
        tensors: Sequence[torch.Tensor],
        leaves: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
        create_graph: bool,
        retain_graph: bool | None,
    ) -> list[torch.Tensor | None]:
        """What ``torch.autograd.grad`` returns, with what backward leaves in ``.grad``."""
        watched = not create_graph and self.fills_grad is not False
        with arrivals(leaves if watched else ()) as came:
            found: list[torch.Tensor | None] = self.binding.during_backward(
                lambda: vjp(
                    tensors, leaves, given, create_graph=create_graph, retain_graph=retain_graph
                )
            )
        if watched:
            left = taken(leaves)
            self.fills_grad = self.fills_grad or any(grad is not None for grad in left)
            if self.fills_grad:
                found, written = settled(found, left, came)
                self.written_grads |= written
        return found

    def accumulate(self, tensors: Sequence[torch.Tensor]) -> None:
        """Run every node of the graph, by ``torch.autograd.backward`` with ones.

        If an input is CSC, BSR or BSC, nothing runs: PyTorch cannot accumulate such gradients.

        Raises:
            OpRaised: when a node raises.
        """
        if not all(pattern.accumulates for pattern in self.binding.patterns.values()):
            return
        self.backward_calls += 1
        with phase("backward"):
            try:
                ones = [torch.ones_like(tensor) for tensor in tensors]
                torch.autograd.backward(list(tensors), ones)
            except Exception as error:
                raise OpRaised("backward", error) from error

    def outputs_of(self, function: Callable[..., Any]) -> list[Output]:
        """Outputs of another function (a reference) on copies of the sample's arguments.

        Raises:
            OpRaised: when it raises.
        """
        args, kwargs = map_tensors(
            (self.sample.args, self.sample.kwargs), lambda tensor: tensor.detach().clone()
        )
        with torch.no_grad(), common_random_numbers(self.seed):
            try:
                return list(outputs_in("output", function(*args, **kwargs), []))
            except Exception as error:
                raise OpRaised("reference", error) from error

    @property
    def has_sparse_inputs(self) -> bool:
        """Whether a differentiable input is sparse, so that ``values`` are its stored values."""
        return bool(self.binding.patterns)

    def index_of(self, position: int, index: Sequence[int]) -> list[int]:
        """The index, in the tensor that the op gets, of the element ``index`` of an input's value;
        it differs for sparse inputs only."""
        return self.binding.index_of(position, index)


#: Share of the largest element by which outputs with and without a graph may differ: both ways may
#: compute the same in another order, in float32 (heuristic).
_OTHER_ORDER = 1e-4


def _differ(outputs: Sequence[Output], others: Sequence[Output]) -> bool:
    """Whether outputs of one shape and dtype differ by more than rounding."""
    for one, other in zip(outputs, others, strict=False):
        a, b = one.value.detach(), other.value
        plain = a.layout == torch.strided and not a.is_nested and a.dtype == b.dtype
        if not plain or a.shape != b.shape or not (a.is_floating_point() or a.is_complex()):
            continue
        if bool(((a - b).abs() > _OTHER_ORDER * b.abs().max()).any() if b.numel() else False):
            return True
    return False


def _same(outputs: Sequence[Output], others: Sequence[Output]) -> bool:
    """Whether outputs are seen to be the same to the last bit, in the same dtype."""
    if len(outputs) != len(others):
        return False
    for one, other in zip(outputs, others, strict=True):
        a, b = one.value, other.value
        if not is_backed(a) or a.layout != torch.strided or a.is_nested:
            return False
        if (a.dtype, a.layout, a.shape) != (b.dtype, b.layout, b.shape) or not equal(a, b):
            return False
    return True


def draws_random_numbers(problem: Problem) -> bool:
    """Whether forward draws random numbers, so that it is judged under one fixed seed."""
    if problem.draws is None:
        with common_random_numbers(problem.seed):
            before = generator_states()
        problem.forward()
        problem.draws = problem.own_generators.have_moved() or before != generator_states()
    return problem.draws
