"""From what was measured, or raised, to its cause."""
