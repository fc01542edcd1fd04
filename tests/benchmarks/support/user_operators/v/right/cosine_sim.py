import torch


class CosineSim(torch.autograd.Function):

    @staticmethod
    def forward(a, b):
        na = a.norm(dim=-1, keepdim=True)
        nb = b.norm(dim=-1, keepdim=True)
        return (a * b / (na * nb)).sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        na = a.norm(dim=-1, keepdim=True)
        nb = b.norm(dim=-1, keepdim=True)
        c = (a * b / (na * nb)).sum(-1, keepdim=True)
        g = g.unsqueeze(-1)
        ga = g * (b / (na * nb) - c * a / na ** 2)
        gb = g * (a / (na * nb) - c * b / nb ** 2)
        return ga, gb
