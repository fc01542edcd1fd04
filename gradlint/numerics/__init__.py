"""Pure functions: steps, noise, differences, directions, verdicts. No rules, no reports."""
