"""Adding a rule takes its file and its row in the catalogue; every output then knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import gradlint

#: What a new rule's file holds: its text, and the experiment.
FILE = '''\
"""Same gradient twice.

What it finds
-------------
Backward returned one and the same tensor for two inputs.

Why it matters
--------------
Whoever changes one gradient in place changes the other.

Bad
---
```python
return grad_output, grad_output
```

Good
----
```python
return grad_output * y, grad_output * x
```

How it looks
------------
```text
ops.py:12:9  GL190  one tensor is returned for `x` and `y`
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from gradlint.experiments.outcomes import judged_by
from gradlint.experiments.returned_gradients import returned_gradients
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for two returned gradients that are one tensor."""
    first, second = returned_gradients(subject)[:2]
    if first.value is not second.value:
        return judged_by([])
    message = f"one tensor is returned for `{first.name}` and `{second.name}`"
    return judged_by([subject.finding(RULE, message, help="return two tensors")])
'''

#: Its row: what it costs, when it runs, and which findings follow from it.
ROW = """\
    Rule("GL190", "contract", "same_gradient_twice", "warning",
         "backward returned one tensor for two inputs",
         calls=CallCounts(usual=(3, 2), most=(30, 20)), implies=Implies(0, ("GL401",))),
"""

OPS = """
import torch

class Good(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])

class Bad(Good):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more rule."""
    root = tmp_path_factory.mktemp("tree")
    package = root / "gradlint"
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(gradlint.__file__).parent, package, ignore=skipped)
    file = package / "rules" / "contract" / "same_gradient_twice.py"
    file.write_text(FILE, encoding="utf-8")
    catalogue = package / "rules" / "catalogue.py"
    text = catalogue.read_text(encoding="utf-8")
    before, after = text.split('    Rule("GL201"')
    catalogue.write_text(f'{before}{ROW}    Rule("GL201"{after}', encoding="utf-8")
    (root / "ops.py").write_text(OPS, encoding="utf-8")
    return root


def python(tree: Path, *arguments: str) -> str:
    """What Python prints, with the copy of the package in place of the installed one."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "100"}
    command = [sys.executable, *arguments]
    ended = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def test_it_is_listed_and_explained(tree: Path) -> None:
    listed = python(tree, "-m", "gradlint", "rules")
    assert "GL190" in listed
    assert "same_gradient_twice" in listed
    explained = python(tree, "-m", "gradlint", "explain", "GL190")
    assert "backward returned one tensor for two inputs" in explained
    assert "Backward returned one and the same tensor for two inputs." in explained


def test_it_runs_and_its_consequences_come_under_it(tree: Path) -> None:
    options = ("--select", "GL190,GL401", "--seed", "1", "--output-format", "json")
    targets = ("ops.py:Good", "ops.py:Bad")
    report: dict[str, Any] = json.loads(python(tree, "-m", "gradlint", "check", *targets, *options))
    good, bad = report["targets"]
    assert good["findings"] == []
    assert {check["code"]: check["verdict"] for check in good["checks"]} == {
        "GL190": "pass",
        "GL401": "pass",
    }
    first, *others = bad["findings"]
    assert (first["code"], first["severity"], first["follows"]) == ("GL190", "warning", None)
    assert first["message"] == "one tensor is returned for `x` and `y`"
    assert {(other["code"], other["follows"]) for other in others} == {("GL401", "GL190")}


def test_its_calls_are_predicted(tree: Path) -> None:
    program = """
        from gradlint.experiments.call_cost import Shape, other_calls
        from gradlint.rules.catalogue import by_code

        shape = Shape(2, 1, 53, False, 48, 6)
        without, alone = other_calls([], shape, most=False), other_calls(
            [by_code("GL190")], shape, most=False
        )
        print(alone.forward - without.forward, alone.backward - without.backward)
    """
    assert python(tree, "-c", textwrap.dedent(program)).split() == ["3", "2"]
