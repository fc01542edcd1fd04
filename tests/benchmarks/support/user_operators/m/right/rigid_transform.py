import torch


class RigidTransform(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, rotation, translation):
        # points (B, N, 3), rotation (B, 3, 3), translation (B, 3)
        ctx.save_for_backward(points, rotation)
        return points @ rotation.transpose(1, 2) + translation.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        points, rotation = ctx.saved_tensors
        grad_points = grad_rotation = grad_translation = None
        if ctx.needs_input_grad[0]:
            grad_points = grad_output @ rotation
        if ctx.needs_input_grad[1]:
            grad_rotation = grad_output.transpose(1, 2) @ points
        if ctx.needs_input_grad[2]:
            grad_translation = grad_output.sum(1)
        return grad_points, grad_rotation, grad_translation
