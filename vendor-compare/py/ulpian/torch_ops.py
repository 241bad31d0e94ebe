"""Every op as PyTorch computes it: a function of the case's arguments that returns all results."""

import torch
import torch.nn.functional as F


def flatten(input, start_dim, end_dim):
    return (torch.flatten(input, start_dim, end_dim),)


def mul(input, other):
    return (torch.mul(input, other),)


def div(input, other, rounding_mode):
    return (torch.div(input, other, rounding_mode=rounding_mode),)


def softmax(input, dim, dtype):
    return (F.softmax(input, dim, dtype=dtype),)


def adaptive_avg_pool2d(input, output_size):
    return (F.adaptive_avg_pool2d(input, output_size),)


def matmul(input, other):
    return (torch.matmul(input, other),)


def max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    result = F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return tuple(result) if return_indices else (result,)


def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    if training:
        # They are updated in place, and the case's own tensors stay as they are.
        running_mean = None if running_mean is None else running_mean.clone()
        running_var = None if running_var is None else running_var.clone()
    result = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    updated = (running_mean, running_var) if training else ()
    return (result, *(tensor for tensor in updated if tensor is not None))


def dropout(input, mask, p, training):
    # PyTorch draws no mask where nothing is dropped.
    if not training or mask is None or p == 0:
        return (F.dropout(input, p, training),)
    # PyTorch takes no mask. These are the formulas it applies to the mask it draws: on the CPU
    # (aten/src/ATen/native/Dropout.cpp) a product with mask / (1 - p) in the input's dtype, elsewhere native_dropout's
    # input * mask * scale, which its backward function computes from a given mask.
    if p == 1:
        return (input * torch.zeros_like(input),)
    if input.device.type == "cpu":
        return (input * mask.to(input.dtype).div(1 - p),)
    return (torch.ops.aten.native_dropout_backward(input, mask.to(torch.bool), 1 / (1 - p)),)


def relu(input):
    return (torch.relu(input),)


def conv2d(input, weight, bias, stride, padding, dilation, groups):
    return (F.conv2d(input, weight, bias, stride, padding, dilation, groups),)


def gelu(input, approximate):
    return (F.gelu(input, approximate=approximate),)


def linear(input, weight, bias):
    return (F.linear(input, weight, bias),)


def layer_norm(input, weight, bias, normalized_shape, eps):
    return (F.layer_norm(input, normalized_shape, weight, bias, eps),)


def add(input, other, alpha):
    return (torch.add(input, other, alpha=alpha),)


OPS = {
    function.__name__: function
    for function in (
        flatten,
        mul,
        div,
        softmax,
        adaptive_avg_pool2d,
        matmul,
        max_pool2d,
        batch_norm,
        dropout,
        relu,
        conv2d,
        gelu,
        linear,
        layer_norm,
        add,
    )
}
