"""One sample examined by all rules: order, causality of findings, resolving power."""
