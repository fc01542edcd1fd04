import torch


class PhaseMask(torch.autograd.Function):
    """field (B, H, W) complex, phase and transmission (H, W) real -> complex (B, H, W)"""

    @staticmethod
    def forward(ctx, field, phase, trans):
        ctx.save_for_backward(field, phase, trans)
        return field * torch.polar(trans.clone(), phase)

    @staticmethod
    def backward(ctx, g):
        field, phase, trans = ctx.saved_tensors
        unit = torch.complex(torch.cos(phase), torch.sin(phase))
        gf = g * (trans * unit).conj()
        r = (g * (unit * field).conj()).sum(0)
        return gf, -trans * r.imag, r.real
