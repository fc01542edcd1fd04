import torch


class MLEMUpdate(torch.autograd.Function):
    # image (B, n), counts (B, m), system (m, n), all positive
    @staticmethod
    def forward(ctx, image, counts, system):
        ctx.save_for_backward(image, counts, system)
        ratio = counts / (image @ system.t())
        return image * (ratio @ system) / system.sum(0)

    @staticmethod
    def backward(ctx, grad_image):
        image, counts, system = ctx.saved_tensors
        proj = image @ system.t()
        ratio = counts / proj
        back = ratio @ system
        sens = system.sum(0)

        g_back = grad_image * image / sens
        g_ratio = g_back @ system.t()
        g_proj = -g_ratio * ratio / proj

        g_image = g_counts = g_system = None
        if ctx.needs_input_grad[0]:
            g_image = grad_image * back / sens + g_proj @ system
        if ctx.needs_input_grad[1]:
            g_counts = g_ratio / proj
        if ctx.needs_input_grad[2]:
            g_sens = -(g_back * back / sens).sum(0)
            g_system = ratio.t() @ g_back + g_proj.t() @ image + g_sens
        return g_image, g_counts, g_system


mlem_update = MLEMUpdate.apply
