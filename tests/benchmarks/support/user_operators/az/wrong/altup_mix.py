import torch
from torch.autograd import Function


class AltUpMix(Function):
    @staticmethod
    def forward(ctx, blocks, computed, predict, correct, active):
        assert blocks.dim() == 4 and blocks.size(2) == predict.size(0) == correct.numel()
        ctx.save_for_backward(blocks, computed, predict, correct)
        ctx.active = active
        predicted = torch.einsum("ik,btkd->btid", predict, blocks)
        innovation = computed - predicted[:, :, active]
        return predicted + correct[:, None] * innovation[:, :, None]

    @staticmethod
    def backward(ctx, grad):
        blocks, computed, predict, correct = ctx.saved_tensors
        active = ctx.active
        predicted = torch.einsum("ik,btkd->btid", predict, blocks)
        innovation = computed - predicted[:, :, active]
        grad_innovation = torch.einsum("btid,i->btd", grad, correct)
        grad_correct = torch.einsum("btid,btd->i", grad, innovation)
        grad_predicted = grad.clone()
        grad_predicted[:, :, active] -= grad_innovation
        grad_blocks = torch.einsum("ik,btid->btkd", predict, grad_predicted)
        grad_predict = torch.einsum("btid,btkd->ik", grad, blocks)
        return grad_blocks, grad_innovation, grad_predict, grad_correct, None
