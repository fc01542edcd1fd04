import torch


class InfoNCE(torch.autograd.Function):
    @staticmethod
    def forward(q, keys, tau):
        logits = q @ keys.T / tau
        return (logits.logsumexp(1) - logits.diagonal()).mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        q, keys, tau = ctx.saved_tensors
        n = q.shape[0]
        logits = q @ keys.T / tau
        d = grad * (logits.softmax(1) - torch.eye(n, dtype=q.dtype, device=q.device)) / n
        gq = gk = gtau = None
        if ctx.needs_input_grad[0]:
            gq = d @ keys / tau
        if ctx.needs_input_grad[1]:
            gk = d.T @ q / tau
        if ctx.needs_input_grad[2]:
            gtau = -(d * logits).sum() / tau
        return gq, gk, gtau
