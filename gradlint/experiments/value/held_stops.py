"""Gradients that treat values on purpose as constants: an estimate by power iteration, an average.

Spectral normalisation divides by u·Wv, where u and v come from a power iteration under ``no_grad``
and u is kept for the next call. Its gradient is the derivative with u and v held constant, which
differs from that of forward. To judge it, everything that a stop hides from autograd is recorded at
the sample and given back, call by call, wherever forward is evaluated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

import gradlint
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

_TORCH, _GRADLINT = (
    os.path.dirname(module.__file__ or "") + os.sep for module in (torch, gradlint)
)

#: Modules of torch through which ``no_grad`` is entered, as a block and as a decorator.
_ENTRANCES = tuple(
    _TORCH + name.replace("/", os.sep) for name in ("autograd/grad_mode.py", "utils/_contextlib.py")
)

_DETACHES = (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)  # type: ignore[attr-defined]


def held_on_purpose(subject: Subject, positions: Sequence[int]) -> set[int]:
    """Those of the inputs ``positions`` whose gradient is the derivative once all that is stopped
    is held constant, where every stop is meant: it stands in PyTorch's own code, in a block under
    ``no_grad`` that updates what the module keeps, or hides what such a value is updated with. What
    a Function writes to arguments that get no gradient is held as well."""
    problem = subject.problem.in_float64() or subject.problem
    tape = _Tape()
    try:
        with _Recording(tape) as recording:
            problem.forward(grad=True)
        recording.settle()
        if not tape.results or not all(tape.meant):
            return set()
        function = first_order(problem)

        def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
            with _Replay(tape) as replay:
                found = problem.forward(values, grad=True)
            if replay.lost:
                return None
            return [item.value.detach() for item in found if item.differentiable]

        held = replace(function, evaluate=evaluate, twin=None)
        judged = judge(held, seed=subject.seed, inputs=positions).inputs
    except (OpRaised, RuntimeError):
        return set()
    finally:
        if problem is not subject.problem:
            subject.problem.forward_calls += problem.forward_calls
            subject.problem.backward_calls += problem.backward_calls
    return {item.index for item in judged if item.verdict in (AGREES, ROUNDED)}


@dataclass
class _Tape:
    """What stopped calls returned at the sample, in order.

    Attributes:
        results: name of the function called, and what it returned.
        updated: positions among them of what the forward of a Function writes to what is kept.
        meant: for each block under ``no_grad`` and each detach, whether it is meant.
    """

    results: list[tuple[str, Any]] = field(default_factory=list)
    updated: list[int] = field(default_factory=list)
    meant: list[bool] = field(default_factory=list)


class _Watching(TorchFunctionMode):
    """Tells the calls whose results autograd does not see from the others.

    Inside the forward of a Function autograd is off as well; what is computed there is
    differentiated by the Function's backward.
    """

    def __init__(self) -> None:
        super().__init__()
        self._switched_off = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        frame = sys._getframe(1)
        if name == "_set_grad_enabled" or frame.f_code.co_filename.startswith(_GRADLINT):
            if name == "_set_grad_enabled":
                self._switch(bool(args[0]), frame)
            return func(*args, **kwargs)
        within_a_function = not (self._switched_off or torch.is_grad_enabled())
        if any(func == known for known in _DETACHES) and not within_a_function:
            return self.stopped(name, func, args, kwargs, frame)
        if self._switched_off or (within_a_function and self.updates(name, args)):
            return self.stopped(name, func, args, kwargs, None)
        return self.seen(args, func(*args, **kwargs), name)

    def _switch(self, on: bool, frame: FrameType) -> None:
        """Autograd is switched on or off by the code of ``frame``."""
        if on:
            self._switched_off = False
        elif torch.is_grad_enabled():
            self._switched_off = True
            self.entered(frame)

    def entered(self, frame: FrameType) -> None:
        """A block under ``no_grad`` begins."""

    def updates(self, name: str, args: tuple[Any, ...]) -> bool:
        """Whether a call in the forward of a Function updates what is kept from call to call."""
        raise NotImplementedError

    def seen(self, args: tuple[Any, ...], result: Any, name: str = "") -> Any:
        """A call with ``args``, which autograd sees, returned ``result``."""
        return result

    def stopped(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
    ) -> Any:
        """A call that autograd does not see; ``frame`` is the caller's where it is a detach."""
        raise NotImplementedError


class _Recording(_Watching):
    def __init__(self, tape: _Tape) -> None:
        super().__init__()
        self._tape = tape
        #: Memory that calls allocated, with a tensor that keeps it; and the block of a tensor that
        #: a stopped call made.
        self._made: dict[int, torch.Tensor] = {}
        self._of_block: dict[int, int] = {}
        #: Tensors that come of a detach alone, and the position of that in the tape.
        self._of_detach: dict[int, int] = {}
        self._parents: dict[int, set[int]] = {}
        #: Of these, those that update what is kept, and those that meet what has a gradient.
        self._kept: set[int] = set()
        self._combined: set[int] = set()
        self._alive: list[torch.Tensor] = []  # so that no number is given twice
        self._block = -1
        self._hook: Any = None

    def __enter__(self) -> Any:
        self._hook = torch.nn.modules.module.register_module_forward_hook(self._keeps)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._hook.remove()

    def entered(self, frame: FrameType) -> None:
        self._tape.meant.append(_in_torch(frame))
        self._block = len(self._tape.meant) - 1

    def updates(self, name: str, args: tuple[Any, ...]) -> bool:
        found = bool(args) and _writes(name) and self._is_kept(args[0])
        if found and not args[0].requires_grad:
            self._tape.updated.append(len(self._tape.results))
            return True
        return False

    def seen(self, args: tuple[Any, ...], result: Any, name: str = "") -> Any:
        self._follow(args, result, name)
        given = {_memory(leaf) for leaf in _tensors(args)}
        self._made |= {
            _memory(leaf): leaf for leaf in _tensors(result) if _memory(leaf) not in given
        }
        return result

    def stopped(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
    ) -> Any:
        of_detach = frame is not None and torch.is_grad_enabled()
        if frame is not None and of_detach:
            self._tape.meant.append(_in_torch(frame) or not args[0].requires_grad)
        elif args and _writes(name) and self._is_kept(args[0]):
            self._is_meant(self._block)
        result = func(*args, **kwargs)
        self._tape.results.append((name, tree_map(_copied, result)))
        if of_detach and isinstance(result, torch.Tensor):
            self._of_detach[id(result)] = len(self._tape.meant) - 1
        if not _writes(name):
            self._alive += _tensors(result)
            self._of_block |= {id(leaf): self._block for leaf in _tensors(result)}
            self.seen(args, result)
        return result

    def _follow(self, args: tuple[Any, ...], result: Any, name: str) -> None:
        """What is computed of a detached tensor: that it updates what is kept speaks for the
        detach, and that it is combined with what has a gradient speaks against it."""
        derived = [leaf for leaf in _tensors(args) if id(leaf) in self._of_detach]
        if not derived:
            return
        if _writes(name) and self._is_kept(args[0]):
            self._kept |= {id(leaf) for leaf in derived}
            return
        in_function = not torch.is_grad_enabled() and not self._switched_off
        for leaf in _tensors(result):
            if leaf.requires_grad or in_function:
                self._combined |= {id(item) for item in derived}
            else:
                self._alive.append(leaf)
                self._of_detach[id(leaf)] = self._of_detach[id(derived[0])]
                self._parents[id(leaf)] = {id(item) for item in derived}

    def settle(self) -> None:
        """Say of each detach whether it is meant: something that comes of it is kept, and it is not
        used in another way than what is kept."""
        behind = self._closed(self._kept)
        other = {item for item in self._combined if not self._closed({item}) & self._kept}
        against = {self._of_detach[item] for item in other}
        for block in {self._of_detach[item] for item in behind} - against:
            self._is_meant(block)

    def _closed(self, tensors: set[int]) -> set[int]:
        """Tensors and all that they were computed of, back to a detach."""
        found, left = set(tensors), list(tensors)
        while left:
            more = self._parents.get(left.pop(), set()) - found
            found |= more
            left += more
        return found

    def _is_kept(self, target: Any) -> bool:
        """Whether ``target`` was there before the call: a buffer, or another network's weight."""
        return isinstance(target, torch.Tensor) and _memory(target) not in self._made

    def _is_meant(self, block: int) -> None:
        if 0 <= block < len(self._tape.meant):
            self._tape.meant[block] = True

    def _keeps(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """After the forward of ``module``: a block that made what it keeps now is meant."""
        for value in (*module._buffers.values(), *module.__dict__.values()):
            if isinstance(value, torch.Tensor) and id(value) in self._of_block:
                self._is_meant(self._of_block[id(value)])
            if isinstance(value, torch.Tensor) and id(value) in self._of_detach:
                self._kept.add(id(value))


class _Replay(_Watching):
    """Gives the recorded results back.

    Attributes:
        lost: whether forward made other calls than at the sample.
    """

    def __init__(self, tape: _Tape) -> None:
        super().__init__()
        self._left = iter(tape.results)
        self._updated = set(tape.updated)
        self._place = 0
        self.lost = False

    def updates(self, name: str, args: tuple[Any, ...]) -> bool:
        return _writes(name) and self._place in self._updated and not args[0].requires_grad

    def stopped(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
    ) -> Any:
        recorded, value = next(self._left, ("", None))
        self._place += 1
        if self.lost or recorded != name:
            self.lost = True
            return func(*args, **kwargs)
        if not _writes(name):
            return tree_map(_copied, value)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and isinstance(value, torch.Tensor):
            with torch.no_grad(), torch._C.DisableTorchFunction():
                result.copy_(value)
        return result


def _tensors(value: Any) -> list[torch.Tensor]:
    leaves = tree_leaves(value)
    return [x for x in leaves if isinstance(x, torch.Tensor) and x.layout == torch.strided]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _writes(name: str) -> bool:
    """Whether the function of this name writes to its first argument."""
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _in_torch(frame: FrameType) -> bool:
    """Whether the code that stops gradients at ``frame`` is PyTorch's."""
    found: FrameType | None = frame
    while found is not None and found.f_code.co_filename.startswith(_ENTRANCES):
        found = found.f_back
    return found is not None and found.f_code.co_filename.startswith(_TORCH)
