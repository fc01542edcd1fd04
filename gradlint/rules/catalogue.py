"""The flat catalogue of all rules, and the selection of rules by code or name.

A row holds everything about a rule that is not in its own file. To add a rule, write
``rules/<family>/<name>.py``, its row here, and its test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from gradlint.model.rule import CallCounts, Implies, Rule, Stage
from gradlint.model.settings import Settings

# Groups of codes that follow from the same defects. _OTHER_CONDITIONS: other dtypes, devices and
# transforms.
_REPEATED = ("GL605", "GL606", "GL608", "GL609", "GL610")
_VALUES = ("GL301", "GL302", "GL401", "GL402", "GL403", "GL404", "GL405", "GL501", "GL502")
_LAYOUTS = ("GL701", "GL702", "GL703", "GL704", "GL705", "GL706", "GL707")
_OTHER_CONDITIONS = (
    "GL801",
    "GL802",
    "GL803",
    "GL804",
    "GL901",
    "GL902",
    "GL903",
    "GL904",
    "GL905",
    "GL906",
)


#: Every rule, sorted by code. Formatted by hand: ruff would give every word a line.
# fmt: off
CATALOGUE: tuple[Rule, ...] = (
    Rule("GL001", "loading", "target_not_loadable", "error",
         "the target cannot be imported or built", stage=Stage.RUNNER),
    Rule("GL002", "loading", "no_usable_inputs", "warning",
         "no inputs were given, and none could be inferred", stage=Stage.RUNNER),
    Rule("GL003", "loading", "forward_raised", "error",
         "forward raised an exception", calls=CallCounts(usual=(2, 1), most=(3, 2))),
    Rule("GL004", "loading", "backward_raised", "error",
         "backward, or the engine that ran it, raised an exception"),
    Rule("GL005", "loading", "process_crashed", "error",
         "the process that ran the op crashed or exited", stage=Stage.RUNNER),
    Rule("GL006", "loading", "timed_out", "error",
         "a phase ran longer than the timeout", stage=Stage.RUNNER),
    Rule("GL007", "loading", "out_of_memory", "error",
         "memory ran out"),
    Rule("GL008", "loading", "process_state_changed", "warning",
         "forward or backward changes global state or leaves something running",
         calls=CallCounts(usual=(1, 1), most=(1, 1))),
    Rule("GL009", "loading", "passes_only_while_checked", "error",
         "its gradient is right while gradlint checks it, and wrong in a process of its own",
         stage=Stage.RUNNER),
    Rule("GL010", "loading", "unused_suppression", "warning",
         "a finding is accepted that is not made", stage=Stage.RUNNER),
    Rule("GL011", "loading", "suppression_without_reason", "warning",
         "a finding is accepted without a reason", stage=Stage.RUNNER),
    Rule("GL012", "loading", "unknown_suppressed_rule", "warning",
         "a comment is meant to accept findings, and names no rule that there is",
         stage=Stage.RUNNER),
    Rule("GL101", "contract", "wrong_number_of_gradients", "error",
         "backward returned more or fewer gradients than forward has arguments"),
    Rule("GL102", "contract", "gradient_for_non_tensor", "error",
         "backward returned a gradient for an argument that is not a tensor"),
    # A gradient that is missing is also missing in every subset, at second order and under every
    # transform.
    Rule("GL103", "contract", "missing_gradient", "error",
         "backward returned None for an input on which the output depends",
         implies=Implies(9, ("GL110", "GL401", "GL501", "GL502", "GL901", "GL902", "GL903"))),
    Rule("GL104", "contract", "gradient_not_a_tensor", "error",
         "backward returned something that is neither a tensor nor None"),
    Rule("GL110", "contract", "gradients_depend_on_requires_grad", "error",
         "gradients depend on which inputs require grad", calls=CallCounts(each_input=(5, 5)),
         stage=Stage.LAYOUT, implies=Implies(10, ("GL102", "GL902", "GL905"))),
    Rule("GL201", "shape", "wrong_gradient_shape", "error",
         "a gradient's shape does not fit its input, and the engine rejects it"),
    Rule("GL202", "shape", "gradient_summed_by_engine", "info",
         "a gradient has the broadcast shape, and the engine sums it"),
    Rule("GL203", "shape", "wrong_gradient_dtype", "error",
         "a gradient has a different dtype than its input", calls=CallCounts(each_input=(4, 2))),
    Rule("GL204", "shape", "wrong_gradient_device", "error",
         "a gradient is on a different device than its input"),
    Rule("GL301", "finite", "nan_in_forward", "warning",
         "forward returned NaN or Inf at finite inputs",
         calls=CallCounts(usual=(5, 5), most=(21, 6)), needs=frozenset({"make_extremes"}),
         chooses=True),
    # What is wrong at the sample is wrong at other inputs too.
    Rule("GL302", "finite", "nan_in_backward", "error",
         "a gradient is NaN or Inf where the function has a finite derivative",
         calls=CallCounts(usual=(0, 0), most=(75, 0)),
         implies=Implies(11, ("GL402", "GL501", "GL502", "GL705", "GL706", "GL707")),
         needs=frozenset({"make_extremes"}), chooses=True),
    Rule("GL303", "finite", "overflow_in_intermediate", "warning",
         "forward overflows although its result is representable",
         calls=CallCounts(usual=(2, 0), most=(3, 0), each_input=(1, 0)),
         stage=Stage.SPECIAL_POINTS, chooses=True),
    Rule("GL401", "value", "wrong_gradient", "error",
         "the gradient differs from the derivative of forward", stage=Stage.VALUES,
         implies=Implies(13, ("GL402", "GL403", "GL404", "GL501", "GL502", "GL706", "GL707",
                    "GL801"))),
    Rule("GL402", "value", "wrong_gradient_at_special_points", "error",
         "the gradient is wrong at zeros, ties, bounds or large values only",
         calls=CallCounts(usual=(20, 0), most=(31, 5), each_input=(4, 0)),
         stage=Stage.SPECIAL_POINTS, needs=frozenset({"make_extremes"}), chooses=True),
    Rule("GL403", "value", "wrong_jvp", "error",
         "forward-mode jvp is not the derivative of forward", stage=Stage.VALUES),
    Rule("GL404", "value", "differs_from_reference", "error",
         "an output differs from the declared reference", stage=Stage.VALUES),
    Rule("GL405", "value", "undefined_or_zero_grad_output", "error",
         "backward fails where an output is unused or its gradient is zero",
         calls=CallCounts(usual=(1, 1), most=(1, 9)), stage=Stage.VALUES,
         implies=Implies(12, ("GL501", "GL502"))),
    Rule("GL501", "order", "wrong_second_derivative", "error",
         "double backward differs from the derivative of backward", stage=Stage.SPECIAL_POINTS,
         needs=frozenset({"differentiate_twice"})),
    Rule("GL502", "order", "second_derivative_lost", "warning",
         "second derivatives are silently zero", stage=Stage.SPECIAL_POINTS,
         needs=frozenset({"differentiate_twice"})),
    Rule("GL503", "order", "once_differentiable", "info",
         "second derivatives are explicitly refused", stage=Stage.SPECIAL_POINTS,
         needs=frozenset({"differentiate_twice"})),
    # After an input has changed, everything that follows is evaluated at a different point.
    Rule("GL601", "state", "input_mutated", "error",
         "forward or backward writes to an argument without declaring it",
         calls=CallCounts(usual=(4, 6), most=(5, 7)), stage=Stage.STATE,
         implies=Implies(2, (*_REPEATED, *_VALUES, *_OTHER_CONDITIONS, "GL603", "GL703", "GL704",
                    "GL110"))),
    # Writing to grad_output raises where it is expanded, and changes it for a second use.
    Rule("GL602", "state", "grad_output_mutated", "error",
         "backward writes to the gradient that it receives", stage=Stage.STATE,
         implies=Implies(3, (*_REPEATED, *_OTHER_CONDITIONS, "GL603", "GL405", "GL501", "GL502",
                    "GL701", "GL702", "GL704", "GL110"))),
    Rule("GL603", "state", "saved_tensor_mutated", "error",
         "a tensor that was saved for backward is overwritten",
         calls=CallCounts(usual=(1, 1), most=(1, 1)),
         stage=Stage.STATE,
         implies=Implies(4, (*_REPEATED, *_OTHER_CONDITIONS, "GL501", "GL502"))),
    Rule("GL604", "state", "tensor_kept_on_ctx", "warning",
         "a tensor is kept alive by an attribute of ctx",
         calls=CallCounts(usual=(1, 1), most=(1, 1)), stage=Stage.STATE),
    Rule("GL605", "state", "second_backward_differs", "error",
         "two backward passes through one graph give different gradients", stage=Stage.STATE,
         implies=Implies(8, ("GL609", "GL903"))),
    Rule("GL606", "state", "nondeterministic", "error",
         "identical calls give different results", calls=CallCounts(usual=(2, 2), most=(12, 12)),
         stage=Stage.STATE,
         implies=Implies(7, (*_VALUES, *_LAYOUTS, *_OTHER_CONDITIONS, "GL605", "GL609", "GL110"))),
    # Memory that was never written holds different numbers in every call.
    Rule("GL607", "state", "uninitialised_memory", "error",
         "results contain memory that was allocated and never written",
         calls=CallCounts(usual=(1, 1), most=(1, 1)), stage=Stage.STATE,
         implies=Implies(1, ("GL602", "GL603", *_REPEATED, *_VALUES, *_LAYOUTS,
                             *_OTHER_CONDITIONS, "GL110"))),
    # State that a call leaves behind changes every later call.
    Rule("GL608", "state", "state_shared_between_calls", "error",
         "a later call changes the result or the gradient of an earlier one",
         calls=CallCounts(usual=(2, 2), most=(2, 2)), stage=Stage.STATE,
         implies=Implies(5, (*_VALUES, *_LAYOUTS, *_OTHER_CONDITIONS, "GL605", "GL606", "GL609",
                    "GL610", "GL110"))),
    Rule("GL609", "state", "breaks_under_checkpointing", "error",
         "gradients change or backward raises under checkpointing or saved-tensor hooks",
         calls=CallCounts(usual=(3, 2), most=(6, 5)), stage=Stage.STATE),
    Rule("GL610", "state", "rng_differs_between_passes", "error",
         "backward draws different random numbers than forward", stage=Stage.STATE,
         implies=Implies(6, (*_VALUES, *_LAYOUTS, *_OTHER_CONDITIONS, "GL605", "GL606", "GL609",
                    "GL110"))),
    # An op that ignores strides does so in every layout.
    Rule("GL701", "layout", "non_contiguous_grad_output", "error",
         "the gradient depends on the memory layout of grad_output",
         calls=CallCounts(usual=(2, 4), most=(60, 30)), stage=Stage.LAYOUT,
         implies=Implies(14, ("GL702", "GL704", "GL609", "GL706", "GL707", "GL903"))),
    Rule("GL702", "layout", "expanded_grad_output", "error",
         "the gradient is wrong where grad_output is expanded, as by a sum",
         calls=CallCounts(usual=(0, 2), most=(0, 2)), stage=Stage.LAYOUT),
    Rule("GL703", "layout", "non_contiguous_input", "error",
         "outputs or gradients depend on the memory layout of an input",
         calls=CallCounts(usual=(3, 3), most=(12, 6), each_input=(2, 2)), stage=Stage.LAYOUT,
         implies=Implies(15, ("GL704", "GL903"))),
    Rule("GL704", "layout", "storage_offset", "error",
         "outputs or gradients depend on where a tensor starts in its storage",
         calls=CallCounts(usual=(1, 2), most=(2, 2)), stage=Stage.LAYOUT),
    Rule("GL705", "layout", "empty_tensors", "error",
         "backward fails, or returns garbage, where a tensor is empty",
         calls=CallCounts(usual=(1, 1), most=(20, 10)), stage=Stage.SIZES,
         implies=Implies(16, ("GL706",)), first_sample=True, chooses=True),
    Rule("GL706", "layout", "odd_sizes", "error",
         "the gradient is wrong at odd sizes, at size 1, or with one axis added or removed",
         calls=CallCounts(usual=(10, 3), most=(500, 200), each_input=(2, 1)), stage=Stage.SIZES,
         first_sample=True, chooses=True),
    Rule("GL707", "layout", "zero_dimensional_tensors", "error",
         "an elementwise gradient is wrong for tensors without dimensions",
         calls=CallCounts(usual=(3, 1), most=(100, 40)), stage=Stage.SIZES, first_sample=True,
         chooses=True),
    Rule("GL801", "precision", "low_precision_gradient", "error",
         "in low precision the gradient is worse than its dtype allows",
         calls=CallCounts(usual=(2, 1), most=(18, 12)), stage=Stage.PRECISION),
    Rule("GL802", "device", "devices_disagree", "error",
         "outputs or gradients differ between the CPU and the GPU", stage=Stage.PRECISION),
    Rule("GL803", "device", "ignores_current_stream", "error",
         "a kernel is launched on a stream other than the current one", stage=Stage.PRECISION),
    Rule("GL804", "device", "ignores_current_device", "error",
         "the op is wrong when the current GPU is not that of its tensors",
         stage=Stage.PRECISION),
    Rule("GL805", "device", "memory_error", "error",
         "compute-sanitizer reports an error in a kernel (--sanitizer)", stage=Stage.RUNNER),
    Rule("GL806", "device", "index_overflow", "error",
         "results are wrong beyond 2³¹ elements", stage=Stage.PRECISION, chooses=True),
    Rule("GL901", "transforms", "wrong_under_vmap", "error",
         "torch.func.vmap gives different values than a loop over the batch",
         calls=CallCounts(usual=(3, 3), most=(4, 4)), stage=Stage.TRANSFORMS, first_sample=True),
    Rule("GL902", "transforms", "wrong_under_torch_func", "error",
         "torch.func gives different derivatives than plain autograd",
         calls=CallCounts(usual=(2, 4), most=(2, 4)), stage=Stage.TRANSFORMS, first_sample=True),
    Rule("GL903", "transforms", "wrong_when_compiled", "error",
         "torch.compile gives different values, or opcheck fails",
         calls=CallCounts(usual=(6, 5), most=(8, 8)), stage=Stage.TRANSFORMS, first_sample=True,
         needs=frozenset({"torch.compile"})),
    Rule("GL904", "transforms", "wrong_under_autocast", "error",
         "backward raises or is wrong after a forward under autocast",
         calls=CallCounts(usual=(2, 2), most=(3, 3)), stage=Stage.TRANSFORMS, first_sample=True),
    Rule("GL905", "transforms", "wrong_when_exported", "error",
         "an exported forward returns different values",
         calls=CallCounts(usual=(1, 0), most=(6, 2)),
         stage=Stage.TRANSFORMS, first_sample=True, needs=frozenset({"torch.compile"})),
    Rule("GL906", "transforms", "tensor_like_lost", "error",
         "tensor-likes give different values or lose their gradient",
         calls=CallCounts(usual=(2, 2), most=(4, 4)), stage=Stage.TRANSFORMS, first_sample=True),
)
# fmt: on


def rule_of(module: str) -> Rule:
    """The row of the rule whose file is ``module``, such as its own ``__name__``."""
    family, name = module.split(".")[-2:]
    return next(rule for rule in CATALOGUE if (rule.family, rule.name) == (family, name))


def rule_names() -> dict[str, str]:
    """Code → name of every rule."""
    return {rule.code: rule.name for rule in CATALOGUE}


#: A code in a sentence: not in brackets, as in a comment that accepts it, nor part of a word.
_CODE = re.compile(r"(?<![\w\[./-])GL\d{3}(?![\w\]*-])")

#: Words of a command, which take a code without its name.
_TYPED = re.compile(r"(?:--(?:select|ignore)[ =]|explain |ignore: )\S*$")


def with_names(text: str) -> str:
    """``text`` with the name of a rule in brackets behind its code where that stands without it:
    ``see GL401`` becomes ``see GL401 (wrong gradient)``. Code between backticks stays."""
    if "GL" not in text:
        return text
    parts = text.split("`")
    names = {code: name.replace("_", " ") for code, name in rule_names().items()}
    told: set[str] = set()

    def named(found: re.Match[str]) -> str:
        code, after = found[0], found.string[found.end() :]
        name = names.get(code, "")
        follows = after.lstrip(" (:").replace("_", " ").startswith(name)
        if not name or follows or code in told or _TYPED.search(found.string[: found.start()]):
            told.add(code)
            return code
        told.add(code)
        return f"{code} ({name})"

    parts[::2] = [_CODE.sub(named, part) for part in parts[::2]]
    return "`".join(parts)


def longest_match(codes: Iterable[str], code: str) -> str | None:
    """The longest of ``codes`` that ``code`` is, or begins with."""
    return max((known for known in codes if code.startswith(known)), key=len, default=None)


def by_code(code: str) -> Rule | None:
    """The rule with this code or name (case does not matter), or None."""
    wanted = code.strip().lower()
    found = (rule for rule in CATALOGUE if wanted in (rule.code.lower(), rule.name))
    return next(found, None)


def select_rules(settings: Settings, catalogue: Sequence[Rule] = CATALOGUE) -> list[Rule]:
    """The rules of ``catalogue`` that ``settings`` selects and does not ignore, in its order.

    Selectors are codes, prefixes of codes (``GL1``), names or ``ALL``. As in ruff, the most
    specific selector that fits a rule decides; between equally specific ones, ignoring wins.
    Selectors that fit no rule have no effect here: settings refuse them when they are read. A rule
    whose severity is set to "off" counts as ignored.
    """
    select = ("ALL",) if settings.select is None else tuple(settings.select)
    chosen = _selected(select, tuple(settings.ignore), tuple(settings.severities), tuple(catalogue))
    return list(chosen)


@cache
def _selected(
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severities: tuple[tuple[str, str], ...],
    catalogue: tuple[Rule, ...],
) -> tuple[Rule, ...]:
    """What :func:`select_rules` returns; a run asks for the same some ten times."""
    levels = dict(severities)
    chosen = []
    for rule in catalogue:
        wanted = max((_specificity(text, rule) for text in select), default=0)
        unwanted = max((_specificity(text, rule) for text in ignore), default=0)
        under = longest_match(levels, rule.code)
        if under is not None and levels[under] == "off":
            unwanted = max(unwanted, _specificity(under, rule))
        if wanted > unwanted:
            chosen.append(rule)
    return tuple(chosen)


def _specificity(selector: str, rule: Rule) -> int:
    """How specifically ``selector`` names ``rule``; 0 where it does not."""
    text = selector.strip()
    if text.upper() == "ALL":
        return 1
    if text.lower() == rule.name:
        return 1 + len(rule.code)
    code = text.upper()
    return 1 + len(code) if code.startswith("GL") and rule.code.startswith(code) else 0
