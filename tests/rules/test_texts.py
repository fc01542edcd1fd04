"""Every rule has its text under the fixed headings, and its examples do what the text says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.report import SEVERITIES
from gradlint.model.rule import HEADINGS, Rule
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.report.explain import sections
from gradlint.rules.catalogue import CATALOGUE, by_code
from gradlint.targets.build import from_object

#: The examples of these rules are about another dtype than float64.
DTYPES = {"GL801": torch.float32}

#: The examples of these rules run on a GPU: they are skipped where there is none.
ON_CUDA = {"GL802": 1, "GL803": 1, "GL804": 2, "GL806": 1}

PROBED = [rule for rule in CATALOGUE if rule.has_probe]


def block(rule: Rule, heading: str) -> str:
    """The one ```python block under ``heading``."""
    body = dict(sections(rule.text)[1])[heading]
    found = re.findall(r"```python\n(.*?)```", body, re.S)
    assert len(found) == 1, f"{rule.code} has {len(found)} examples under {heading}"
    return textwrap.dedent(found[0])


def dtype_of(rule: Rule) -> torch.dtype:
    return DTYPES.get(rule.code, torch.float64)


def device_of(rule: Rule) -> str:
    """Where the rule's examples run; skips the test where there is no such device."""
    if rule.code not in ON_CUDA:
        return "cpu"
    if torch.cuda.device_count() < ON_CUDA[rule.code]:
        pytest.skip(f"needs {ON_CUDA[rule.code]} CUDA device(s)")
    return "cuda"


def subject_in(
    module: ModuleType, dtype: torch.dtype = torch.float64, device: str = "cpu"
) -> Subject:
    """The ``Op`` of an example on its own sample, in ``dtype``, on ``device``."""
    cls = module.Op
    op = from_object(cls)
    given = cls.sample_inputs()
    args = given if isinstance(given, tuple) else (given,)
    converted = Sample("example", "sample_inputs", args).converted(dtype, device)
    tensors = [tensor for _, tensor in converted.named_tensors(None)]
    if not any(tensor.requires_grad for tensor in tensors):
        for tensor in tensors:
            tensor.requires_grad_(tensor.is_floating_point() or tensor.is_complex())
    if isinstance(getattr(cls, "reference", None), str):
        op.reference = reference_of(cls.reference, op)
    return Subject(op, converted, Settings(seed=3))


def reference_of(text: str, op: Any) -> Callable[..., Any]:
    names = list(op.signature.parameters)
    expression = compile_expression(text, names)
    return lambda *args: evaluate(expression, dict(zip(names, args, strict=False)))


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.code)
def test_text_has_the_headings_in_order(rule: Rule) -> None:
    title, parts = sections(rule.text)
    assert title.strip().endswith(".")
    assert tuple(heading for heading, _ in parts) == HEADINGS
    assert all(body.strip() for _, body in parts)


@pytest.mark.parametrize("rule", PROBED, ids=lambda rule: rule.code)
def test_bad_example_fires(rule: Rule, load_module: Callable[..., ModuleType]) -> None:
    assert rule.has_probe
    device = device_of(rule)
    outcome = rule.probe(subject_in(load_module(block(rule, "Bad")), dtype_of(rule), device))
    assert [finding.code for finding in outcome.findings] == [rule.code]
    (finding,) = outcome.findings
    assert SEVERITIES.index(finding.severity) >= SEVERITIES.index(rule.severity)
    assert outcome.verdict == ("pass" if finding.severity == "info" else "fail")
    assert finding.location is not None
    assert finding.message
    assert finding.help
    assert finding.reproduce.startswith("gradlint check ")


@pytest.mark.parametrize("rule", PROBED, ids=lambda rule: rule.code)
def test_good_example_is_silent(rule: Rule, load_module: Callable[..., ModuleType]) -> None:
    assert rule.has_probe
    device = device_of(rule)
    outcome = rule.probe(subject_in(load_module(block(rule, "Good")), dtype_of(rule), device))
    assert outcome.findings == []
    assert outcome.verdict == "pass", outcome.note


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.code)
def test_good_example_passes_all_other_rules(
    rule: Rule, load_module: Callable[..., ModuleType]
) -> None:
    subject = subject_in(load_module(block(rule, "Good")), dtype_of(rule))
    for other in CATALOGUE:
        if other.has_probe:
            assert [f.message for f in other.probe(subject).findings] == [], other.code


def test_unloadable_example_raises_on_import(load_module: Callable[..., ModuleType]) -> None:
    rule = by_code("GL001")
    assert rule is not None
    with pytest.raises(ModuleNotFoundError):
        load_module(block(rule, "Bad"))
    assert load_module(block(rule, "Good"), "good").Op


def test_example_without_inputs_gives_none(load_module: Callable[..., ModuleType]) -> None:
    rule = by_code("GL002")
    assert rule is not None
    bad = from_object(load_module(block(rule, "Bad")).Op)
    with pytest.raises(NoInputsFound):
        samples_for(bad, Settings(seed=1))
    good = from_object(load_module(block(rule, "Good"), "good").Op)
    assert samples_for(good, Settings(seed=1))[0].origin == "sample_inputs"


@pytest.mark.skipif(not hasattr(signal, "SIGABRT"), reason="no signals on this platform")
def test_crashing_example_aborts(tmp_path: Path) -> None:
    rule = by_code("GL005")
    assert rule is not None
    path = tmp_path / "bad.py"
    path.write_text(block(rule, "Bad") + "\nOp.apply(*Op.sample_inputs())\n", encoding="utf-8")
    ended = subprocess.run([sys.executable, str(path)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGABRT


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
def test_endless_example_is_interrupted(load_module: Callable[..., ModuleType]) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    rule = by_code("GL006")
    assert rule is not None
    op = load_module(block(rule, "Bad")).Op
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            op.apply(*op.sample_inputs())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    good = load_module(block(rule, "Good"), "good").Op
    assert good.apply(*good.sample_inputs()).tolist() == [2.0, 2.0, 2.0]
