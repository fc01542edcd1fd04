import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class RoIPoolFunction(Function):
    @staticmethod
    def forward(ctx, input, rois, output_size, spatial_scale=1.0):
        ph, pw = output_size
        assert rois.size(1) == 5, "RoI must be (idx, x1, y1, x2, y2)!"
        n, c, h, w = input.shape
        output = input.new_zeros(rois.size(0), c, ph, pw)
        argmax = torch.full(output.shape, -1, dtype=torch.long, device=input.device)
        for k in range(rois.size(0)):
            b = int(rois[k, 0])
            x1, y1, x2, y2 = (int(round(float(v) * spatial_scale)) for v in rois[k, 1:])
            bh = max(y2 - y1 + 1, 1) / ph
            bw = max(x2 - x1 + 1, 1) / pw
            for i in range(ph):
                ys = min(max(math.floor(i * bh) + y1, 0), h)
                ye = min(max(math.ceil((i + 1) * bh) + y1, 0), h)
                for j in range(pw):
                    xs = min(max(math.floor(j * bw) + x1, 0), w)
                    xe = min(max(math.ceil((j + 1) * bw) + x1, 0), w)
                    if ye <= ys or xe <= xs:
                        continue
                    val, pos = input[b, :, ys:ye, xs:xe].reshape(c, -1).max(1)
                    output[k, :, i, j] = val
                    argmax[k, :, i, j] = (ys + pos // (xe - xs)) * w + xs + pos % (xe - xs)
        ctx.save_for_backward(rois, argmax)
        ctx.input_shape = input.shape
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        rois, argmax = ctx.saved_tensors
        n, c, h, w = ctx.input_shape
        plane = rois[:, 0].long().view(-1, 1, 1, 1) * c + torch.arange(c, device=rois.device).view(1, -1, 1, 1)
        index = (plane * (h * w) + argmax).view(-1)
        grad_flat = grad_output.reshape(-1)
        keep = argmax.view(-1) >= 0
        grad_input = grad_output.new_zeros(n * c * h * w)
        grad_input.index_add_(0, index[keep], grad_flat[keep])
        return grad_input.view(n, c, h, w), None, None, None
