import torch
from torch.autograd import Function


class Aggregation(Function):
    @staticmethod
    def forward(ctx, input, position, weight, idx):
        # input: input: (n, c), position: (n, nsample, c), weight : (n, nsample, c'), idx: (n, nsample)
        # output: (n, c);  channel i uses weight i % c'
        n, nsample, c = position.shape
        w_c = weight.shape[-1]
        ctx.save_for_backward(input, position, weight, idx)
        return ((input[idx] + position) * weight.repeat(1, 1, c // w_c)).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        # grad_out: (n, c)
        input, position, weight, idx = ctx.saved_tensors
        n, nsample, c = position.shape
        w_c = weight.shape[-1]
        g = grad_output.unsqueeze(1)
        grad_position = g * weight.repeat(1, 1, c // w_c)
        grad_input = torch.zeros_like(input).index_add(0, idx.reshape(-1), grad_position.reshape(-1, c))
        grad_weight = (g * (input[idx] + position)).view(n, nsample, w_c, c // w_c).sum(3)
        return grad_input, grad_position, grad_weight, None


aggregation = Aggregation.apply
