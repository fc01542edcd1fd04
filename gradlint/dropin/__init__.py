"""Drop-ins for ``torch.autograd.gradcheck`` and ``gradgradcheck``.

An existing test suite changes one import; the verdicts then rest on measured error bars, and a
failure's message names the cause.
"""

from gradlint.dropin._failure import InconclusiveWarning
from gradlint.dropin._gradcheck import gradcheck
from gradlint.dropin._gradgradcheck import gradgradcheck

__all__ = ["InconclusiveWarning", "gradcheck", "gradgradcheck"]
