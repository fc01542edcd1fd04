"""The fixture ``gradlint``: checks inside a test."""

from __future__ import annotations

from typing import Any

import pytest

from gradlint.base.errors import CheckFailedError
from gradlint.model.report import Report
from gradlint.testing.items import headline
from gradlint.testing.live import checked
from gradlint.testing.options import options, seed_of


class Checker:
    """Checks operators for one test, by the options of the run.

    Args:
        node: the test.

    Attributes:
        seed: of the checks; it follows from the id of the test, unless an option or the settings
            give one (then it is that text, or None).
    """

    def __init__(self, node: pytest.Item) -> None:
        """See the class."""
        self._node = node
        self.seed = seed_of(node.config, node.nodeid)

    def check(self, op: Any, inputs: Any = None, **arguments: Any) -> Report:
        """Check whether the gradients of ``op`` are right.

        Args:
            op, inputs, arguments: those of ``gradlint.check``; ``fail_on`` too. What is not given
                is as the options of pytest and the settings say.

        Returns:
            The report, which is ok.

        Raises:
            CheckFailedError: it is not; an AssertionError whose message is the full report, which
                names the seed.
            GradlintError: the operator, its inputs or an option can't be used.
        """
        __tracebackhide__ = True
        given = {"seed": self.seed, **options(self._node.config), **arguments}
        report = checked(self._node.config, op, inputs, given)
        if not report.ok:
            raise CheckFailedError(f"{headline(report)}\n\n{report}")
        return report
