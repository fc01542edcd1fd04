"""Forward of an op as an exported program: a TorchScript trace, torch.export, ONNX."""

from __future__ import annotations

import importlib
import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
from torch.utils import _pytree

from gradlint.model.sample import map_tensors
from gradlint.trace.op_io import outputs_in
from gradlint.trace.problem import Problem

#: A program: tensors in, tensors out.
Program = Callable[..., Sequence[torch.Tensor]]

#: What an ONNX export needs.
ONNX_PACKAGES = ("onnx", "onnxscript")


class Refused(Exception):
    """An exporter says that it can't, or may not, export the op."""


class ForwardModule(torch.nn.Module):
    """An op as a module whose inputs are all tensors of a call: arguments, parameters and buffers.
    Everything else keeps its value from the sample."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self._copies = problem.in_place
        self._invoke, given = _call(problem, problem.values())
        if problem.op.module is not None:
            self._invoke = _in_place_of_state(problem.op.module)
        leaves, self._spec = _pytree.tree_flatten(given)
        self._fixed = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._slots = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def tensors(self, problem: Problem, values: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Fresh arguments of this module for a call of the op at ``values``: a program may write to
        them, as a module does to its buffers."""
        leaves, _ = _pytree.tree_flatten(_call(problem, values)[1])
        return tuple(leaves[slot].detach() for slot in self._slots)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The tensors that the op returns."""
        leaves = list(self._fixed)
        for slot, tensor in zip(self._slots, tensors, strict=True):
            leaves[slot] = tensor
        given = _pytree.tree_unflatten(leaves, self._spec)
        if self._copies:
            given = map_tensors(given, torch.Tensor.clone)
        return tuple(item.value for item in outputs_in("output", self._invoke(*given), []))


def _in_place_of_state(module: torch.nn.Module) -> Callable[..., Any]:
    """Calls ``module`` with tensors in place of its parameters and buffers, tied ones too, so that
    ``module.parameters()`` finds them as well; a trace refuses ``torch.func.functional_call``."""

    def invoke(args: Any, kwargs: Any, state: dict[str, torch.Tensor]) -> Any:
        with ExitStack() as undone:
            for name, tensor in state.items():
                for path in _names_of_tied(module, name):
                    above, _, leaf = path.rpartition(".")
                    owner = module.get_submodule(above)
                    held: dict[str, Any] = (
                        owner._parameters if leaf in owner._parameters else owner._buffers
                    )
                    undone.callback(_refill, held, dict(held))
                    held[leaf] = tensor
            return module(*args, **kwargs)

    return invoke


def _names_of_tied(module: torch.nn.Module, name: str) -> list[str]:
    """All names of the parameter or buffer ``name``: tied weights have several."""
    named = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    wanted = next(tensor for path, tensor in named if path == name)
    return [path for path, tensor in named if tensor is wanted]


def _refill(held: dict[str, Any], before: dict[str, Any]) -> None:
    held.clear()  # for the sake of the order
    held.update(before)


def _call(problem: Problem, values: Sequence[torch.Tensor]) -> tuple[Callable[..., Any], Any]:
    """What calls the op, and what it is given at ``values``."""
    kept: list[tuple[Callable[..., Any], Any]] = []

    def transform(invoke: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: kept.append((invoke, given))

    problem.through(transform).forward(values)
    return kept[0]


def traced(module: ForwardModule, tensors: tuple[Any, ...]) -> Program:
    """A TorchScript trace.

    Raises:
        Refused: PyTorch warns that the trace may be incorrect.
    """
    with warnings.catch_warnings(record=True) as caught, _silent():
        warnings.simplefilter("always")
        program: Program = torch.jit.trace(module, tensors, check_trace=False)
    for item in caught:
        if issubclass(item.category, torch.jit.TracerWarning):
            raise Refused(str(item.message).partition(". ")[0])
    return program


def exported(module: ForwardModule, tensors: tuple[Any, ...]) -> Program:
    """A program of torch.export."""
    with _silent():
        found: Program = torch.export.export(module, tensors, strict=False).module()
    return found


def as_onnx(module: ForwardModule, tensors: tuple[Any, ...]) -> Program:
    """An ONNX model, run by ONNX's own reference evaluator.

    Raises:
        Refused: its packages are not installed.
    """
    missing = [name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(f"{' and '.join(missing)} not installed")
    with _silent():
        program = torch.onnx.export(module, tensors, dynamo=True, verbose=False)
        assert program is not None
        reference = importlib.import_module("onnx.reference")
        evaluator = reference.ReferenceEvaluator(program.model_proto)
    names = [item.name for item in program.model_proto.graph.input]

    def run(*given: torch.Tensor) -> list[torch.Tensor]:
        # The exporter leaves out inputs that nothing reads.
        feeds = {f"tensors_{k}": value.numpy() for k, value in enumerate(given)}
        feeds = {name: feeds[name] for name in names}
        return [torch.from_numpy(value) for value in evaluator.run(None, feeds)]

    return run


@contextmanager
def _silent() -> Iterator[None]:
    with torch.no_grad(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
