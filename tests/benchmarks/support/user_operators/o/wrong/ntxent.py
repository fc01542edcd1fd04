import torch


class NTXent(torch.autograd.Function):
    """Normalised-temperature cross entropy of two views.

    view_a, view_b: (N, D), row i of one is the positive of row i of the other; expected to be l2-normalised
    by the caller. Returns the mean over the 2N anchors.
    """

    @staticmethod
    def _logits(view_a, view_b, temperature):
        z = torch.cat([view_a, view_b])
        sim = z @ z.t() / temperature
        own = torch.eye(z.size(0), dtype=torch.bool, device=z.device)
        return z, sim.masked_fill(own, float("-inf"))

    @staticmethod
    def _partner(n, device):
        return torch.arange(2 * n, device=device).roll(n)

    @staticmethod
    def forward(ctx, view_a, view_b, temperature=0.5):
        if view_a.shape != view_b.shape:
            raise ValueError("views must have one shape")
        ctx.save_for_backward(view_a, view_b)
        ctx.temperature = temperature
        _, sim = NTXent._logits(view_a, view_b, temperature)
        partner = NTXent._partner(view_a.size(0), sim.device)
        return torch.nn.functional.cross_entropy(sim, partner)

    @staticmethod
    def backward(ctx, grad):
        view_a, view_b = ctx.saved_tensors
        n = view_a.size(0)
        z, sim = NTXent._logits(view_a, view_b, ctx.temperature)
        target = torch.nn.functional.one_hot(NTXent._partner(n, z.device), 2 * n)
        g = grad * (sim.softmax(1) - target) / (2 * n)
        g_z = 2 * g @ z / ctx.temperature
        return g_z[:n], g_z[n:], None
