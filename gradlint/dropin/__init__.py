"""Drop-ins for ``torch.autograd.gradcheck`` and ``gradgradcheck``.

An existing test suite changes one import. The verdicts are then based on measured error bars, and
the message of a failure names the cause.
"""
