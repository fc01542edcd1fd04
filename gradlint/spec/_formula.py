"""An op made from formulas: a real ``torch.autograd.Function`` where a backward is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from gradlint.expressions.compile import Expression, compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.spec._check import GRADIENT_NAMES, OUTPUT_NAMES
from gradlint.spec._model import OpSpec


class Program:
    """The compiled formulas of a spec.

    Args:
        spec: a spec that passed the loader.
    """

    def __init__(self, spec: OpSpec) -> None:
        self.inputs = tuple(spec.inputs)
        names = list(spec.inputs)
        behind = [*names, *spec.let, *GRADIENT_NAMES, *OUTPUT_NAMES]
        self.lets = {name: compile_expression(text, behind) for name, text in spec.let.items()}
        compiled = {
            key: compile_expression(text, behind)
            for key, text in (("forward", spec.forward), ("reference", spec.reference))
            if text is not None
        }
        self.forward = compiled.get("forward")
        self.reference = compiled.get("reference")
        self.backward = {
            name: compile_expression(text, behind) for name, text in (spec.backward or {}).items()
        }

    def signature(self) -> inspect.Signature:
        """The inputs, by position or by name."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.inputs])

    def used(self, expression: Expression) -> frozenset[str]:
        """Names that ``expression`` uses, those behind its lets included."""
        names = set(expression.names)
        # A let sees only those before it, so one walk from the last to the first is enough.
        for let in reversed(list(self.lets)):
            if let in names:
                names |= self.lets[let].names
        return frozenset(names - set(self.lets))

    def run(self, expression: Expression, values: Mapping[str, Any]) -> Any:
        """The value of ``expression``; lets are computed when they are first used."""
        like = [v for name in self.inputs for v in _tensors(values.get(name))]
        dtype = next(
            (v.dtype.to_real() for v in like if v.is_floating_point() or v.is_complex()), None
        )
        device = next((v.device for v in like), None)

        def compute(let: Expression, env: Mapping[str, Any]) -> Any:
            return evaluate(let, env, dtype=dtype, device=device)

        return compute(expression, _Scope(values, self.lets, compute))


class _Scope(Mapping[str, Any]):
    def __init__(
        self,
        values: Mapping[str, Any],
        lets: Mapping[str, Expression],
        compute: Callable[[Expression, Mapping[str, Any]], Any],
    ) -> None:
        self.values_ = dict(values)
        self.lets = lets
        self.compute = compute

    def __getitem__(self, name: str) -> Any:
        if name not in self.values_:
            self.values_[name] = self.compute(self.lets[name], self)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.values_, *self.lets])

    def __len__(self) -> int:
        return len({*self.values_, *self.lets})


def plain_callable(program: Program, name: str) -> Callable[..., Any]:
    """``forward`` as a callable that autograd differentiates."""
    return _named(program, program.forward, name)


def reference_callable(program: Program, signature: inspect.Signature | None) -> Callable[..., Any]:
    """``reference`` as a callable with the arguments of the op."""
    return _named(program, program.reference, "reference", signature)


def _named(
    program: Program,
    expression: Expression | None,
    name: str,
    signature: inspect.Signature | None = None,
) -> Callable[..., Any]:
    assert expression is not None
    signature = signature or program.signature()

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        for parameter in signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                extra = values.pop(parameter.name, ())
                free = [other for other in program.inputs if other not in values]
                values.update(zip(free, extra, strict=False))
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                values.update(values.pop(parameter.name, {}))
        return program.run(expression, values)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def function_class(
    program: Program, name: str, *, once_differentiable: bool = False
) -> type[torch.autograd.Function]:
    """A Function with the forward and backward of ``program``.

    Args:
        name: of the class; shown in messages and in ``grad_fn``.
        once_differentiable: whether backward refuses to be differentiated.
    """
    formula = program.forward
    assert formula is not None
    kept = frozenset().union(*(program.used(item) for item in program.backward.values()))
    keeps_outputs = bool(kept & set(OUTPUT_NAMES))

    def forward(*args: Any) -> Any:
        returned = program.run(formula, dict(zip(program.inputs, args, strict=True)))
        if isinstance(returned, (list, tuple)):
            return tuple(_fresh(item, args) for item in returned)
        return _fresh(returned, args)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        exact = [
            item
            for item in outputs
            if isinstance(item, torch.Tensor)
            and not (item.is_floating_point() or item.is_complex())
        ]
        ctx.mark_non_differentiable(*exact)
        tensors: list[torch.Tensor] = []
        ctx.plain = {}
        ctx.places = {}
        for key, value in zip(program.inputs, inputs, strict=True):
            if key not in kept:
                continue
            if isinstance(value, torch.Tensor):
                ctx.places[key] = len(tensors)
                tensors.append(value)
            else:
                ctx.plain[key] = value
        ctx.outputs = len(outputs) if keeps_outputs else 0
        ctx.save_for_backward(*tensors, *(outputs if keeps_outputs else ()))

    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        saved = ctx.saved_tensors
        values = dict(ctx.plain)
        values.update({key: saved[place] for key, place in ctx.places.items()})
        values["grad_output"], values["grad_outputs"] = grad_outputs[0], grad_outputs
        if ctx.outputs:
            outputs = saved[len(saved) - ctx.outputs :]
            values["output"], values["outputs"] = outputs[0], outputs
        gradients = []
        for position, key in enumerate(program.inputs):
            wanted = ctx.needs_input_grad[position] and key in program.backward
            gradients.append(program.run(program.backward[key], values) if wanted else None)
        return tuple(gradients)

    forward.__signature__ = program.signature()  # type: ignore[attr-defined]
    refusing = torch.autograd.function.once_differentiable
    members = {
        "__doc__": f"The formulas of the spec `{name}`.",
        "generate_vmap_rule": True,
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(refusing(backward) if once_differentiable else backward),
    }
    return type(name, (torch.autograd.Function,), members)


def _fresh(value: Any, args: tuple[Any, ...]) -> Any:
    """``value``, as a view where it is an argument itself: autograd won't save that one."""
    same = isinstance(value, torch.Tensor) and any(value is arg for arg in args)
    return value.view_as(value) if same else value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
