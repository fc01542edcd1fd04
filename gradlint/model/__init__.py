"""Plain, typed data: settings, operators, samples, findings, reports, rules."""
