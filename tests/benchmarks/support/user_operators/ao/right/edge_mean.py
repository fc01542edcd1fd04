import torch


class GatedEdgeMean(torch.autograd.Function):
    """out[v] = 1/deg(v) * sum over edges (u -> v) of gate_uv * x[u]

    x: (N, C), gate: (E,), src / dst: (E,) long.
    """

    @staticmethod
    def forward(ctx, x, gate, src, dst):
        N = x.shape[0]
        deg = torch.bincount(dst, minlength=N).clamp(min=1).to(x.dtype)
        ctx.save_for_backward(x, gate, src, dst, deg)
        msg = gate.unsqueeze(1) * x[src]
        return torch.zeros_like(x).index_add(0, dst, msg) / deg.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_out):
        x, gate, src, dst, deg = ctx.saved_tensors
        ge = (grad_out / deg.unsqueeze(1))[dst]
        gx = ggate = None
        if ctx.needs_input_grad[0]:
            gx = torch.zeros_like(x).index_add(0, src, ge * gate.unsqueeze(1))
        if ctx.needs_input_grad[1]:
            ggate = (ge * x[src]).sum(1)
        return gx, ggate, None, None
