"""Target cannot be loaded.

What it finds
-------------
Importing the module of the operator, or building the operator, failed: the module raised, called
`sys.exit`, holds a syntax error, or needs a package that is not installed. So does an operator that
imports, but raises for all inputs when it is called, since its compiled extension was not built
(`try: from . import _C`, `except ImportError: _C = None`) or a package is missing. What needs a GPU
is skipped where there is none.

Why it matters
--------------
An operator that can't be loaded is not checked. In CI this must not look like success, so it is an
error; all other targets are still checked.

Bad
---
```python
import torch
import a_package_that_is_not_installed

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.randn(3),)
```

How it looks
------------
```text
mylib/ops.py:2:1  GL001  target cannot be loaded: importing it raised ModuleNotFoundError
  original   No module named 'a_package_that_is_not_installed'
  help       install the missing package, or run from the folder from which it can be imported
```

References
----------
- Python's import system: https://docs.python.org/3/reference/import.html
"""

from __future__ import annotations

import re
from typing import Any

from gradlint.experiments.loading.process_findings import process_finding
from gradlint.model.report import Finding
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(
    target: str, message: str, settings: Settings, *, error: str = "", help: str = "", **place: Any
) -> Finding:
    """The finding that ``target`` can't be loaded.

    Args:
        target: as typed.
        message: one line, what went wrong, such as "importing it raised ValueError".
        error: the exception's text, as it was.
        help: the next step, where the loader knows one.
        place: location and excerpt of the line that raised, or where the syntax is wrong.
    """
    return process_finding(
        RULE,
        target,
        f"target cannot be loaded: {message}",
        settings,
        evidence={"original": error},
        help=help or _advice(error, message),
        **place,
    )


def _advice(error: str, message: str) -> str:
    if "No module named" in error or "ModuleNotFoundError" in error:
        return "install the missing package, or run from the folder from which it can be imported"
    if "SyntaxError" in error:
        return "fix the syntax; `python -m py_compile FILE` shows the same error"
    if "SystemExit" in error:
        return 'guard the call with `if __name__ == "__main__":` so that importing does not exit'
    module = re.search(r"importing `([\w.]+)`", message)
    if module is not None:
        return f"the import must work by itself: try `python -c 'import {module.group(1)}'`"
    return "the file must run by itself: try `python FILE`"
