import torch

GAS_CONSTANT = 8.314462618


class ArrheniusRate(torch.autograd.Function):
    """Modified Arrhenius law  k = A T^n exp(-Ea / (R T)).

    temperature: (B, 1); log_a, n, ea: (K,), ea in J/mol. Returns (B, K).
    """

    @staticmethod
    def forward(ctx, temperature, log_a, n, ea):
        ctx.save_for_backward(temperature, log_a, n, ea)
        return torch.exp(log_a + n * temperature.log() - ea / (GAS_CONSTANT * temperature))

    @staticmethod
    def backward(ctx, grad_k):
        temperature, log_a, n, ea = ctx.saved_tensors
        rt = GAS_CONSTANT * temperature
        k = torch.exp(log_a + n * temperature.log() - ea / rt)
        g = grad_k * k
        grad_t = (g * (n + ea / rt) / temperature).sum(1, keepdim=True)
        grad_log_a = g.sum(0)
        grad_n = (g * temperature.log()).sum(0)
        grad_ea = -(g / rt).sum(0)
        return grad_t, grad_log_a, grad_n, grad_ea
