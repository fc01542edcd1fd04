"""Drop-ins for ``torch.autograd.gradcheck`` and ``gradgradcheck``.

An existing test suite changes one import; the verdicts then rest on measured error bars, and a
failure's message names the cause.
"""
