import torch


class SplineWeighting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, basis, weight_index):
        # x: E x M_in, weight: K x M_in x M_out, basis: E x S, weight_index: E x S
        ctx.save_for_backward(x, weight, basis, weight_index)
        w = weight[weight_index]
        return torch.einsum("ei,es,esio->eo", x, basis, w)

    @staticmethod
    def backward(ctx, grad_out):
        x, weight, basis, weight_index = ctx.saved_tensors
        grad_x = grad_weight = grad_basis = None
        w = weight[weight_index]

        if ctx.needs_input_grad[0]:
            grad_x = torch.einsum("eo,es,esio->ei", grad_out, basis, w)
        if ctx.needs_input_grad[1]:
            gw = torch.einsum("ei,es,eo->esio", x, basis, grad_out)
            grad_weight = torch.zeros_like(weight).index_add(
                0, weight_index.reshape(-1), gw.reshape(-1, *weight.shape[1:]))
        if ctx.needs_input_grad[2]:
            grad_basis = torch.einsum("ei,eo,esio->es", x, grad_out, w)

        return grad_x, grad_weight, grad_basis, None
