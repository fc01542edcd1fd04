import torch
from torch.autograd import Function


class TCPPoisson(Function):
    """Poisson tumour control probability with linear-quadratic survival.

    Args:
        dose: (B, V) total dose of each voxel.
        clonogens: (V,) number of clonogens.
        alpha, beta: scalar tensors, radiosensitivity.
        fractions: number of fractions the dose is given in.

    Returns (B,).
    """

    @staticmethod
    def forward(ctx, dose, clonogens, alpha, beta, fractions=1):
        if fractions < 1:
            raise ValueError("fractions must be at least 1")
        ctx.save_for_backward(dose, clonogens, alpha, beta)
        ctx.fractions = fractions
        survivors = clonogens * torch.exp(-alpha * dose - beta * dose**2 / fractions)
        return torch.exp(-survivors.sum(-1))

    @staticmethod
    def backward(ctx, grad):
        dose, clonogens, alpha, beta = ctx.saved_tensors
        n = ctx.fractions
        surviving = torch.exp(-alpha * dose - beta * dose**2 / n)
        tcp = torch.exp(-(clonogens * surviving).sum(-1, keepdim=True))
        lost = -grad[:, None] * tcp * surviving
        killed = -lost * clonogens
        grad_dose = killed * (alpha + 2 * beta * dose / n)
        grad_alpha = (killed * dose).sum()
        grad_beta = (killed * dose**2).sum() / n
        return grad_dose, lost.sum(0), grad_alpha, grad_beta, None
