import torch


class EccentricAnomaly(torch.autograd.Function):
    @staticmethod
    def forward(M, e, max_iter):
        E = M + e * torch.sin(M)
        for _ in range(max_iter):
            E = E - (E - e * torch.sin(E) - M) / (1 - e * torch.cos(E))
        return E

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, e, _ = inputs
        ctx.save_for_backward(e, output)

    @staticmethod
    def backward(ctx, grad):
        e, E = ctx.saved_tensors
        dM = grad / (1 - e * torch.cos(E))
        return dM, dM * torch.sin(E), None
