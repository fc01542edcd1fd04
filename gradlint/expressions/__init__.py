"""Safe expressions: parsed to a syntax tree, checked against a whitelist, then interpreted.

They serve the formulas, references and surrogates of specs, and ``--inputs "randn(3, 4), None"``.
A text that is not in the whitelist is refused when it is compiled; what it would allocate is
bounded when it runs. Compiling never imports torch.
"""
