"""One flat table of all rules, and the selection of rules by code or name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradlint.model.rule import Rule
from gradlint.model.settings import Settings
from gradlint.rules.contract.gradient_for_non_tensor import RULE as GL102
from gradlint.rules.contract.gradient_not_a_tensor import RULE as GL104
from gradlint.rules.contract.gradients_depend_on_requires_grad import RULE as GL110
from gradlint.rules.contract.missing_gradient import RULE as GL103
from gradlint.rules.contract.wrong_number_of_gradients import RULE as GL101
from gradlint.rules.device.devices_disagree import RULE as GL802
from gradlint.rules.device.ignores_current_device import RULE as GL804
from gradlint.rules.device.ignores_current_stream import RULE as GL803
from gradlint.rules.device.index_overflow import RULE as GL806
from gradlint.rules.device.memory_error import RULE as GL805
from gradlint.rules.finite.nan_in_backward import RULE as GL302
from gradlint.rules.finite.nan_in_forward import RULE as GL301
from gradlint.rules.finite.overflow_in_intermediate import RULE as GL303
from gradlint.rules.layout.empty_tensors import RULE as GL705
from gradlint.rules.layout.expanded_grad_output import RULE as GL702
from gradlint.rules.layout.non_contiguous_grad_output import RULE as GL701
from gradlint.rules.layout.non_contiguous_input import RULE as GL703
from gradlint.rules.layout.odd_sizes import RULE as GL706
from gradlint.rules.layout.storage_offset import RULE as GL704
from gradlint.rules.layout.zero_dimensional_tensors import RULE as GL707
from gradlint.rules.loading.backward_raised import RULE as GL004
from gradlint.rules.loading.forward_raised import RULE as GL003
from gradlint.rules.loading.no_usable_inputs import RULE as GL002
from gradlint.rules.loading.out_of_memory import RULE as GL007
from gradlint.rules.loading.process_crashed import RULE as GL005
from gradlint.rules.loading.process_state_changed import RULE as GL008
from gradlint.rules.loading.target_not_loadable import RULE as GL001
from gradlint.rules.loading.timed_out import RULE as GL006
from gradlint.rules.order.once_differentiable import RULE as GL503
from gradlint.rules.order.second_derivative_lost import RULE as GL502
from gradlint.rules.order.wrong_second_derivative import RULE as GL501
from gradlint.rules.precision.low_precision_gradient import RULE as GL801
from gradlint.rules.shape.gradient_summed_by_engine import RULE as GL202
from gradlint.rules.shape.wrong_gradient_device import RULE as GL204
from gradlint.rules.shape.wrong_gradient_dtype import RULE as GL203
from gradlint.rules.shape.wrong_gradient_shape import RULE as GL201
from gradlint.rules.state.breaks_under_checkpointing import RULE as GL609
from gradlint.rules.state.grad_output_mutated import RULE as GL602
from gradlint.rules.state.input_mutated import RULE as GL601
from gradlint.rules.state.nondeterministic import RULE as GL606
from gradlint.rules.state.rng_differs_between_passes import RULE as GL610
from gradlint.rules.state.saved_tensor_mutated import RULE as GL603
from gradlint.rules.state.second_backward_differs import RULE as GL605
from gradlint.rules.state.state_shared_between_calls import RULE as GL608
from gradlint.rules.state.tensor_kept_on_ctx import RULE as GL604
from gradlint.rules.state.uninitialised_memory import RULE as GL607
from gradlint.rules.transforms.tensor_like_lost import RULE as GL906
from gradlint.rules.transforms.wrong_under_autocast import RULE as GL904
from gradlint.rules.transforms.wrong_under_torch_func import RULE as GL902
from gradlint.rules.transforms.wrong_under_vmap import RULE as GL901
from gradlint.rules.transforms.wrong_when_compiled import RULE as GL903
from gradlint.rules.transforms.wrong_when_exported import RULE as GL905
from gradlint.rules.value.differs_from_reference import RULE as GL404
from gradlint.rules.value.undefined_or_zero_grad_output import RULE as GL405
from gradlint.rules.value.wrong_gradient import RULE as GL401
from gradlint.rules.value.wrong_gradient_at_special_points import RULE as GL402
from gradlint.rules.value.wrong_jvp import RULE as GL403

#: Every rule, sorted by code.
TABLE: tuple[Rule, ...] = (
    GL001,
    GL002,
    GL003,
    GL004,
    GL005,
    GL006,
    GL007,
    GL008,
    GL101,
    GL102,
    GL103,
    GL104,
    GL110,
    GL201,
    GL202,
    GL203,
    GL204,
    GL301,
    GL302,
    GL303,
    GL401,
    GL402,
    GL403,
    GL404,
    GL405,
    GL501,
    GL502,
    GL503,
    GL601,
    GL602,
    GL603,
    GL604,
    GL605,
    GL606,
    GL607,
    GL608,
    GL609,
    GL610,
    GL701,
    GL702,
    GL703,
    GL704,
    GL705,
    GL706,
    GL707,
    GL801,
    GL802,
    GL803,
    GL804,
    GL805,
    GL806,
    GL901,
    GL902,
    GL903,
    GL904,
    GL905,
    GL906,
)


def by_code(code: str) -> Rule | None:
    """The rule with this code or name (case does not matter), or None."""
    wanted = code.strip().lower()
    found = (rule for rule in TABLE if wanted in (rule.code.lower(), rule.name))
    return next(found, None)


def select_rules(settings: Settings, table: Sequence[Rule] = TABLE) -> list[Rule]:
    """The rules of ``table`` that ``settings`` selects and does not ignore, in its order.

    Selectors are codes, prefixes of codes (``GL1``), names or ``ALL``. As in ruff, the most
    specific selector that fits a rule decides; between equally specific ones, ignoring wins.
    Selectors that fit no rule have no effect here: see :func:`unknown_selectors`.
    """
    select = ("ALL",) if settings.select is None else settings.select
    chosen = []
    for rule in table:
        wanted = max((_fit(text, rule) for text in select), default=0)
        unwanted = max((_fit(text, rule) for text in settings.ignore), default=0)
        if wanted > unwanted:
            chosen.append(rule)
    return chosen


def unknown_selectors(selectors: Iterable[str], table: Sequence[Rule] = TABLE) -> list[str]:
    """Those of ``selectors`` that fit no rule of ``table``."""
    return [text for text in selectors if not any(_fit(text, rule) for rule in table)]


def _fit(selector: str, rule: Rule) -> int:
    """How specifically ``selector`` names ``rule``; 0 where it does not."""
    text = selector.strip()
    if text.upper() == "ALL":
        return 1
    if text.lower() == rule.name:
        return 1 + len(rule.code)
    code = text.upper()
    return 1 + len(code) if code.startswith("GL") and rule.code.startswith(code) else 0
