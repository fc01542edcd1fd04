"""Which of the functions of ``torch_alone`` show a finding of each rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from gradlint.model.report import Finding
from gradlint.reproduction.torch_alone import (
    effects,
    isolated,
    layouts,
    raised,
    returned,
    transforms,
    values,
)
from gradlint.reproduction.torch_alone.case import Case, Defect

_MODULES: tuple[ModuleType, ...] = (
    *(values, raised, returned, effects),
    *(layouts, transforms, isolated),
)

_FIRST = ("wrong_gradient(case, {name}, {hint})", "wrong_gradient(case)")
_BACKWARD = ("raises_in_backward(case)",)
_NOT_FINITE = ("not_finite_gradient(case, {name})", "not_finite_gradient(case)")

_ENDS = ("ends_badly(case, {seconds})",)

#: Rule → expressions in ``case``, the most telling first. ``{name}`` stands for the input of the
#: finding, ``{hint}`` for its index, ``{seconds}`` for how long a call may take.
KINDS: dict[str, tuple[str, ...]] = {
    "GL003": ("raises_in_forward(case)",),
    "GL004": _BACKWARD,
    "GL005": _ENDS,
    "GL006": _ENDS,
    "GL101": ("wrong_return(case)", *_BACKWARD),
    "GL102": ("wrong_return(case)", *_BACKWARD),
    "GL103": _FIRST,
    "GL104": ("wrong_return(case)", *_BACKWARD),
    "GL110": ("depends_on_requires_grad(case)", "depends_on_identity(case)"),
    "GL201": ("wrong_return(case)", *_BACKWARD),
    "GL202": ("wrong_return(case)",),
    "GL203": ("wrong_return(case)", *_BACKWARD),
    "GL204": ("wrong_return(case)", *_BACKWARD),
    "GL301": ("not_finite_output(case)",),
    "GL302": _NOT_FINITE,
    "GL303": ("not_finite_output(case)",),
    "GL401": (*_FIRST, "low_precision(case)"),
    "GL402": (*_FIRST, *_NOT_FINITE, *_BACKWARD, "wrong_along_directions(case)"),
    "GL403": ("wrong_jvp(case)",),
    "GL405": ("fails_with_unused_outputs(case)",),
    "GL501": ("wrong_second_derivative(case, {name})", "wrong_second_derivative(case)"),
    "GL502": ("wrong_second_derivative(case, {name})", "wrong_second_derivative(case)"),
    "GL601": ("argument_changed(case)", "aliased_output(case)"),
    "GL602": ("grad_output_changed(case)", "grad_output_changed_inside(case)"),
    "GL603": ("saved_tensor_changed(case)", "change_goes_unnoticed(case)"),
    "GL604": ("kept_on_context(case)",),
    "GL605": ("second_backward_differs(case)",),
    "GL606": ("nondeterministic(case)",),
    "GL607": ("uninitialised_memory(case)",),
    "GL608": ("later_call_interferes(case)", "earlier_call_interferes(case)"),
    "GL609": ("fails_with_hooks(case)",),
    "GL610": _FIRST,
    "GL701": ("depends_on_layout_of_grad_output(case)",),
    "GL702": ("depends_on_expanding(case)",),
    "GL703": ("depends_on_layout_of_inputs(case)",),
    "GL704": ("depends_on_layout_of_grad_output(case)", "depends_on_layout_of_inputs(case)"),
    "GL705": (
        *_BACKWARD,
        "uninitialised_memory(case)",  # it may hold zeros by chance, which would be right
        *_FIRST,
        *_NOT_FINITE,
        "wrong_return(case)",
        "raises_in_forward(case)",
    ),
    "GL706": (*_FIRST, *_BACKWARD, *_NOT_FINITE, "wrong_return(case)"),
    "GL707": (*_FIRST, *_BACKWARD, *_NOT_FINITE, "wrong_return(case)"),
    "GL801": ("low_precision(case)",),
    "GL901": ("wrong_under_vmap(case)",),
    "GL902": ("wrong_under_torch_func(case)",),
    "GL903": ("wrong_when_compiled(case)", "fails_opcheck(case)"),
    "GL904": ("wrong_under_autocast(case)",),
    "GL905": ("wrong_when_exported(case)",),
    "GL906": ("wrong_for_subclasses(case)",),
}

#: Rules whose findings end the process that looks for them: only the script itself can.
ENDING = frozenset({"GL005", "GL006"})

#: Seconds that a script lets a call take, at least and at most. Heuristic: on a machine with six
#: processes for each processor a first call took more than 5; who runs a script does not wait long.
LEAST_SECONDS, MOST_SECONDS = 20.0, 60.0

#: Rules that run the operator on arguments of their own choosing: where the defect is, is found
#: among all arguments that they tried.
CHOOSING = frozenset(
    {"GL203", "GL301", "GL302", "GL303", "GL402", "GL705", "GL706", "GL707", "GL801", "GL204"}
)


@dataclass(frozen=True)
class Shows:
    """A check: its source, and what it does."""

    source: str
    look: Callable[[Case], Defect | None]


def checks_of(finding: Finding, timeout: float = MOST_SECONDS) -> list[Shows]:
    """What may show ``finding``, the most telling first.

    Args:
        timeout: seconds that a check of the operator may take.
    """
    seconds = min(max(timeout, LEAST_SECONDS), MOST_SECONDS)
    hint = tuple(finding.index) if finding.index is not None else None
    found = []
    known = {name: value for module in _MODULES for name, value in vars(module).items()}
    for template in dict.fromkeys(KINDS.get(finding.code, ())):
        source = template.format(name=ascii(finding.input or ""), hint=repr(hint), seconds=seconds)
        code = compile(f"lambda case: {source}", "<check>", "eval")
        found.append(Shows(source, eval(code, dict(known))))
    return found
