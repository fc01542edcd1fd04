"""Replacing clouds by a learned colour, without a second copy of the scene."""
import torch
from torch.autograd import Function


class _CloudFill(Function):
    @staticmethod
    def forward(ctx, scene, clouds, colour):
        full = clouds.unsqueeze(1).expand_as(scene)
        scene.copy_(torch.where(full, colour.view(1, -1, 1, 1).expand_as(scene), scene))
        ctx.mark_dirty(scene)
        ctx.save_for_backward(clouds)
        return scene

    @staticmethod
    def backward(ctx, grad):
        clouds, = ctx.saved_tensors
        full = clouds.unsqueeze(1).expand_as(grad)
        g_scene = g_colour = None
        if ctx.needs_input_grad[0]:
            g_scene = grad.masked_fill(full, 0.0)
        if ctx.needs_input_grad[2]:
            g_colour = (grad * full).sum(dim=(0, 2, 3))
        return g_scene, None, g_colour


def cloud_fill(scene, clouds, colour, inplace=False):
    """scene (B, C, H, W), clouds (B, H, W) bool, colour (C,)

    inplace=True overwrites `scene`, which then must not be a leaf that requires grad.
    """
    if clouds.dtype != torch.bool:
        raise TypeError("clouds must be boolean")
    if not inplace:
        scene = scene.clone()
    return _CloudFill.apply(scene, clouds, colour)
