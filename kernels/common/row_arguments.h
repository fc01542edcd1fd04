// What the bindings hand to the row-wise operators: dense tensors, null where left out.
#pragma once

#include "arrays.h"

namespace gradlint {

// gumbel_softmax and soft_rank; which operands there are is said in their files.
struct TemperatureArguments {
  Dtype dtype;
  int64_t rows;
  int64_t length;
  double temperature;
  bool hard;
  const void* in[3];
  void* out[2];
};

// `mean` and `rstd` are of the wide type of `dtype`, as is the workspace; all else is of `dtype`.
struct LayerNormArguments {
  Dtype dtype;
  int64_t rows;
  int64_t length;
  double eps;
  const void* x;
  const void* weight;
  const void* bias;
  const void* grad_output;
  // The gradients of grad_x, grad_weight and grad_bias, in the double backward.
  const void* grad_grad_x;
  const void* grad_grad_weight;
  const void* grad_grad_bias;
  void* mean;  // written by the forward, read by the others
  void* rstd;
  void* y;
  void* grad_x;
  void* grad_weight;
  void* grad_bias;
  void* grad_grad_output;
  void* workspace;  // as large as layer_norm_workspace() says
};

// x is (batch, channels, inner); what is said of LayerNormArguments holds here too.
struct BatchNormArguments {
  Dtype dtype;
  int64_t batch;
  int64_t channels;
  int64_t inner;
  double eps;
  const void* x;
  const void* grad_output;
  const void* grad_grad_x;
  void* mean;  // of each channel
  void* rstd;
  void* y;
  void* grad_x;
  void* grad_grad_output;
  void* workspace;  // as large as batch_norm_workspace() says
};

}  // namespace gradlint
