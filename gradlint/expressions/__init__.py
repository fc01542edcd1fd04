"""Safe expressions: parsed to a syntax tree, checked against a whitelist, then interpreted.

They are used for the formulas, references and surrogates of specs, and for ``--inputs "randn(3, 4),
None"``. Names outside of the whitelist are refused when an expression is compiled; what it may
allocate is limited when it runs. Compiling never imports torch.
"""
