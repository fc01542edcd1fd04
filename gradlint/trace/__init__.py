"""Running an op while watching it: as a function of its inputs, and call by call."""

from gradlint.trace._phase import PHASES, install, phase

__all__ = ["PHASES", "install", "phase"]
