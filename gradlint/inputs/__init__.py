"""From an op to the samples that it is run on: given by the user (``_given``) or inferred.

Inference collects evidence about every parameter from names, annotations, docstrings, the code of
the op and calls of it (``_gather``), turns it into guesses (``_proposals``) and tries plans, which
have one guess for each parameter (``_plan``), best first (``_search``). The error of a failed
attempt suggests repairs (``_repairs``). A plan that works is refined and varied (``_refine``).
"""
