"""From the name a user typed to operators."""

from gradlint.targets._op import KINDS, Intent, Op, OpRef

__all__ = ["KINDS", "Intent", "Op", "OpRef"]
