"""No output is connected to an input: does the function depend on them all the same?"""

from __future__ import annotations

from typing import Any

from gradlint.experiments.input_dependence import first_dependence
from gradlint.experiments.outcomes import inconclusive
from gradlint.experiments.subject import Subject
from gradlint.model.op import Op
from gradlint.model.rule import Outcome, Rule
from gradlint.targets.nodes import function_node, method_node
from gradlint.targets.source_file import dotted

#: Decorators by which a function says that it takes no part in differentiation.
_WITHOUT_GRADIENT = frozenset({"no_grad", "inference_mode"})


def judge_disconnected(subject: Subject, rule: Rule) -> Outcome:
    """No output is connected to the inputs: a finding only if the function depends on them."""
    outputs = [
        item
        for item in subject.run.outputs
        if item.value.is_floating_point() or item.value.is_complex()
    ]
    if not outputs:
        others = "".join(f" ({what})" for what in subject.problem.non_tensor_outputs[:1])
        note = f"no output is floating-point or complex{others}: nothing was judged"
        return inconclusive(note)
    found = first_dependence(subject.problem)
    if found is None:
        return inconclusive(
            "no output is differentiable, and none depends smoothly on an input: nothing was judged"
        )
    name, output, slope = found
    declared = subject.run.own is None and subject.op.kind == "function"
    finding = subject.finding(
        rule,
        f"no gradient reaches `{name}`: no output is connected to it",
        severity="warning" if declared else "error",
        cause="zero",
        cause_text=f"zero: `{output}` depends on `{name}` (slope {slope:.3g} along one direction), "
        "but carries no graph",
        input=name,
        output=output,
        evidence={"measured_slope": slope},
        grounds=subject.grounds(refused=is_without_gradient(subject.op)),
        help="remove .detach(), .data, no_grad or mark_non_differentiable from the path between "
        "them, or pass inputs without requires_grad if this is intended",
    )
    return Outcome("fail", [finding])


def is_without_gradient(op: Op) -> bool:
    """Whether forward as a whole is decorated with ``torch.no_grad`` or the like."""
    module: Any = op.module
    if module is not None:
        found = method_node(type(module), "forward")
        node = found[1] if found is not None else None
    elif op.defining is not None and not isinstance(op.defining, type):
        plain = function_node(op.defining)
        node = plain[1] if plain is not None else None
    else:
        return False
    decorators = getattr(node, "decorator_list", [])
    called = (getattr(item, "func", item) for item in decorators)
    return any(dotted(item).rpartition(".")[2] in _WITHOUT_GRADIENT for item in called)
