"""Call an op: counted, seeded, and with a record of its side effects.

The op never gets the caller's tensors but copies of them, so an op that writes to its inputs cannot
spoil a later measurement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch

from gradlint.base.text import error_line, error_text
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.ops.backed import is_backed
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.ops.patience import Patience
from gradlint.ops.phase import phase
from gradlint.trace._binding import Binding, Relay
from gradlint.trace.global_state import preserved_state
from gradlint.trace.module_state import module_state
from gradlint.trace.op_io import Handed, OpRaised, Output, outputs_in
from gradlint.trace.random import OwnGenerators, start_from

#: Real floating dtypes, the coarser ones last.
_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

#: A cast to one of these turns a function in float32 or float64 into a staircase.
_COARSE = (torch.float16, torch.bfloat16)

#: Memory of this size or more, in bytes, is kept for reuse; allocators keep smaller blocks
#: themselves (glibc's malloc returns larger ones to the system at once).
KEPT_FROM_BYTES = 2**20

#: Counts the references to a storage; None if this PyTorch has no such function.
_holders = getattr(torch._C, "_storage_Use_Count", None)

#: Magnitudes beyond this, or below its reciprocal, are named beside a size (heuristic: samples are
#: of order one).
UNUSUAL = 100.0

#: Common to all errors that PyTorch raises for in-place operations on leaves: "a leaf Variable that
#: requires grad is being used in an in-place operation", "… has been used in …" (mark_dirty), "a
#: view of a leaf Variable …".
_LEAF_IN_PLACE = ("leaf Variable that requires grad", "in-place")

#: Exceptions and changes of outputs that a problem keeps for its report, at most.
MOST_TOLD = 4


class Casts(DispatchMode):
    """Notes casts of real floating tensors to coarser dtypes.

    Args:
        omitted: whether such casts are left out, so that the op computes in the finer dtype.

    Attributes:
        coarsest: float16 or bfloat16 if something was cast to it; else None.
    """

    def __init__(self, *, omitted: bool = False) -> None:
        super().__init__()
        self.omitted = omitted
        self.coarsest: torch.dtype | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and _coarser(kwargs.get("dtype"), args[0].dtype):
            if kwargs["dtype"] in _COARSE and self.coarsest is not torch.bfloat16:
                self.coarsest = kwargs["dtype"]
            if self.omitted:
                kwargs = {**kwargs, "dtype": args[0].dtype}
        return func(*args, **kwargs)


def _coarser(dtype: torch.dtype | None, before: torch.dtype) -> bool:
    known = dtype in _DTYPES and before in _DTYPES
    return known and _DTYPES.index(before) < min(2, _DTYPES.index(dtype))


class Spare:
    """Copies of large tensors in memory that is reused, one for each input of a call.

    Copying into fresh memory takes several times as long as into memory that was used before,
    because the system provides it page by page.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.Tensor, int]] = {}

    def copy(self, key: int, value: torch.Tensor) -> torch.Tensor:
        """A copy of ``value`` to which nothing else refers; the op may keep it or write to it.

        Args:
            key: identifies the input of the call.
            value: detached, of any layout.
        """
        nbytes = value.numel() * value.element_size()
        if value.layout != torch.strided or nbytes < KEPT_FROM_BYTES or _holders is None:
            return value.clone()
        if type(value) is not torch.Tensor or not value.is_contiguous():
            return value.clone()
        kept, alone = self._kept.get(key, (None, 0))
        if (
            kept is None
            or (kept.shape, kept.dtype, kept.device) != (value.shape, value.dtype, value.device)
            or _count(kept) != alone
            or not is_backed(kept)
        ):
            kept = value.clone()
            self._kept[key] = kept, _count(kept)
        else:
            kept.copy_(value)
        # A new tensor over the same memory: as long as it, or a view of it, is alive, the storage
        # has one more reference.
        return kept.detach()


def _count(tensor: torch.Tensor) -> int:
    assert _holders is not None
    return int(_holders(tensor.untyped_storage()._cdata))


class Calls:
    """Calls of ``op`` on the arguments of ``sample``, with other values of its inputs.

    Args:
        op: the operator.
        sample: its arguments; tensors that require grad are the differentiable inputs.
        seed: every call starts from this seed.

    Attributes:
        forward_calls, backward_calls: how often each was called.
        changed_outputs: how dtypes and shapes of later outputs differed from the first call's.
        raised: what calls of the op raised, a line each.
        non_tensor_outputs: outputs of the last call that are not tensors, in words.
        mode_changes: modes of PyTorch that a call of the op left changed, in words.
        own_generators: random generators that the op or its arguments hold.
        zeroed: output name → mask of elements that are infinite for all inputs; they are replaced
            by zero, so that the others can be judged.
        preserve_state: restore global state after every call (slower; for ops that change it).
        uncast: leave out casts to coarser dtypes, so that the op computes in the sample's.
        quickest_s: seconds of the quickest forward call so far.
        patience: the limit of calls while a check chooses the inputs, or None.
        surroundings: makes a context in which forward and backward run, or None.
    """

    def __init__(self, op: Op, sample: Sample, seed: int) -> None:
        self.op = op
        self.sample = sample
        self.seed = seed
        self.forward_calls = 0
        self.backward_calls = 0
        self.changed_outputs: list[str] = []
        self.raised: list[str] = []
        self.zeroed: dict[str, torch.Tensor] = {}
        self.non_tensor_outputs: list[str] = []
        self.mode_changes: list[str] = []
        self.preserve_state = False
        self.uncast = False
        self.quickest_s = math.inf
        self.patience: Patience | None = None
        self.surroundings: Callable[[], AbstractContextManager[Any]] | None = None
        self.own_generators = OwnGenerators(
            [op.module, op.function, op.call, sample.args, sample.kwargs]
        )
        self._state = module_state(op.module) if op.module is not None else None
        self._kinds: list[tuple[str, str]] = []
        self._facts: list[tuple[torch.dtype, torch.Size]] | None = None
        #: Whether the op writes to its inputs, and so gets copies that are not leaves.
        self.in_place = False
        self._origins: list[torch.Tensor] = []
        self._handed: list[Handed] | None = None
        self._spare = Spare()
        self.binding = Binding(op, sample)

    def unwatched(self, passed: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Tensors that the op returns for ``passed``, without seeding random generators and without
        converting exceptions."""
        self.forward_calls += 1
        self._put_state_back()
        if self.in_place:
            passed = [leaf.clone() if leaf.is_leaf else leaf for leaf in passed]
        with phase("forward"):
            returned = self.binding.call(passed)
        return [item.value for item in outputs_in("output", returned, [])]

    @contextmanager
    def handing_over(self) -> Iterator[list[Handed]]:
        """The tensors themselves that the op got in the last call of the body."""
        self._handed = []
        try:
            yield self._handed
        finally:
            self._handed = None

    @contextmanager
    def keeping_state(self) -> Iterator[None]:
        """Calls of the body find the module's own attributes as the call before left them."""
        state, self._state = self._state, None
        try:
            yield
        finally:
            self._state = state

    def _put_state_back(self) -> None:
        if self._state is not None:
            self._state.put_back()

    def _around(self) -> AbstractContextManager[Any]:
        if not self.preserve_state and not self.uncast and self.surroundings is None:
            return nullcontext()

        around = ExitStack()
        if self.surroundings is not None:
            around.enter_context(self.surroundings())
        if self.preserve_state:
            around.enter_context(preserved_state())
        if self.uncast:
            around.enter_context(Casts(omitted=True))
        return around

    def _limited(self, tensors: Sequence[torch.Tensor]) -> AbstractContextManager[Any]:
        """A limit of time for a call with ``tensors``, while there is one."""
        if self.patience is None:
            return nullcontext()
        return self.patience.limit(lambda: _sizes_and_values(tensors))

    def _leaves(
        self,
        values: Sequence[torch.Tensor],
        grad: bool,
        requires_grad: Sequence[bool] | None = None,
    ) -> list[torch.Tensor]:
        flags = requires_grad or [grad] * len(values)
        self._origins = list(values)
        return [
            self.binding.as_passed(k, self._spare.copy(k, value.detach())).requires_grad_(flag)
            for k, (value, flag) in enumerate(zip(values, flags, strict=True))
        ]

    def _put_back(self, leaves: list[torch.Tensor]) -> None:
        """Undo what an in-place op did to ``leaves`` before PyTorch raised."""
        for leaf, origin in zip(leaves, self._origins, strict=False):
            if leaf.layout == torch.strided and leaf.shape == origin.shape:
                leaf.data.copy_(origin)

    def _call(self, leaves: list[torch.Tensor], constants: Relay | None = None) -> list[Output]:
        self.forward_calls += 1
        try:
            returned = self._invoke(leaves, constants)
        except OpRaised as raised:
            text = error_text(raised.error) if isinstance(raised.error, RuntimeError) else ""
            if self.in_place or not all(part in text for part in _LEAF_IN_PLACE):
                if len(self.raised) < MOST_TOLD:
                    self.raised.append(error_line(raised.error))
                raise
            # PyTorch does not allow in-place ops on leaves, so the op gets copies that are not
            # leaves.
            self.in_place = True
            self._put_back(leaves)
            returned = self._invoke(leaves, constants)
        self.non_tensor_outputs = []
        outputs = list(outputs_in("output", returned, self.non_tensor_outputs))
        self._compare_kinds(outputs)
        return [self._without_infinities(item) for item in outputs]

    def _without_infinities(self, output: Output) -> Output:
        mask = self.zeroed.get(output.name)
        if mask is None or mask.shape != output.value.shape:
            return output
        return Output(output.name, output.value.masked_fill(mask, 0.0))

    def _compare_kinds(self, outputs: list[Output]) -> None:
        facts = [
            (item.value.dtype, item.value.shape) for item in outputs if not item.value.is_nested
        ]
        if facts == self._facts:
            return
        kinds = [(item.name, item.kind) for item in outputs]
        if self._facts is None:
            self._facts, self._kinds = facts, kinds
        for (name, before), (_, now) in zip(self._kinds, kinds, strict=False):
            if before != now and len(self.changed_outputs) < MOST_TOLD:
                self.changed_outputs.append(f"{name}: {before} and {now}")

    def _invoke(self, leaves: list[torch.Tensor], constants: Relay | None) -> Any:
        self.own_generators.reset()
        self._put_state_back()
        started = time.perf_counter()
        with phase("forward"), self._around():
            start_from(self.seed)
            passed = leaves
            if self.in_place:
                passed = [leaf.clone() if leaf.is_leaf else leaf for leaf in leaves]
            mode = torch.is_grad_enabled()
            try:
                with self._limited(passed):
                    found = self.binding.call(passed, constants, self._handed)
                self.quickest_s = min(self.quickest_s, time.perf_counter() - started)
                return found
            except Exception as error:
                raise OpRaised("forward", error) from error
            finally:
                if torch.is_grad_enabled() != mode and not self.mode_changes:
                    self.mode_changes.append(f"grad mode: {mode} → {not mode}")


def _sizes_and_values(tensors: Sequence[torch.Tensor]) -> str:
    """The size of the largest of ``tensors`` and unusual magnitudes in words: "31 × 33"."""
    given = [tensor.detach() for tensor in tensors if tensor.numel() and not tensor.is_nested]
    largest = max(given, key=torch.Tensor.numel, default=None)
    if largest is None:
        return "empty tensors"
    top = float(largest.abs().max())
    sizes = " × ".join(map(str, largest.shape)) or "no dimensions"
    usual = 1.0 / UNUSUAL < top < UNUSUAL
    return sizes if usual else f"{sizes} with values up to {top:.2g}"
