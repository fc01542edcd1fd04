import torch
import torch.nn as nn


class _Hill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, conc, log_ec50, slope):
        ctx.save_for_backward(conc, log_ec50, slope)
        return torch.sigmoid(slope * (conc.log() - log_ec50))

    @staticmethod
    def backward(ctx, g):
        conc, log_ec50, slope = ctx.saved_tensors
        lg = conc.log()
        y = torch.sigmoid(slope * (lg - log_ec50))
        gz = g * y * (1 - y)
        g_slope = (gz * lg).reshape(-1, slope.numel()).sum(0)
        return gz * slope / conc, -(gz * slope).reshape(-1, slope.numel()).sum(0), g_slope


class HillResponse(nn.Module):
    """Dose response of several compounds: conc (..., C) > 0 to fractions of the maximal effect."""

    def __init__(self, compounds):
        super().__init__()
        self.log_ec50 = nn.Parameter(torch.zeros(compounds))
        self.slope = nn.Parameter(torch.ones(compounds))

    def forward(self, conc):
        if conc.is_complex() or conc.shape[-1] != self.slope.numel():
            raise ValueError("expected real concentrations, one column a compound")
        return _Hill.apply(conc, self.log_ec50, self.slope)
