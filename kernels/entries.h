// Every entry point once: kernels.h includes this in the namespace of the CPU's and of CUDA's.

// y = f(x), element by element: the outputs, then the inputs.
// (y; x), then (gx; g, x), then (gg, gx; c, g, x)
void square(const Context&, const Elements&, const Scalars&);
void square_backward(const Context&, const Elements&, const Scalars&);
void square_backward_backward(const Context&, const Elements&, const Scalars&);

void exp(const Context&, const Elements&, const Scalars&);
void exp_backward(const Context&, const Elements&, const Scalars&);
void exp_backward_backward(const Context&, const Elements&, const Scalars&);

void scaled_sigmoid(const Context&, const Elements&, const Scalars&);
void scaled_sigmoid_backward(const Context&, const Elements&, const Scalars&);
void scaled_sigmoid_backward_backward(const Context&, const Elements&, const Scalars&);

void gelu(const Context&, const Elements&, const Scalars&);
void gelu_backward(const Context&, const Elements&, const Scalars&);
void gelu_backward_backward(const Context&, const Elements&, const Scalars&);

void silu(const Context&, const Elements&, const Scalars&);
void silu_backward(const Context&, const Elements&, const Scalars&);
void silu_backward_backward(const Context&, const Elements&, const Scalars&);

// (y; x), then (gx; g, x)
void relu(const Context&, const Elements&, const Scalars&);
void relu_backward(const Context&, const Elements&, const Scalars&);

void clipped_relu(const Context&, const Elements&, const Scalars&);
void clipped_relu_backward(const Context&, const Elements&, const Scalars&);

void soft_threshold(const Context&, const Elements&, const Scalars&);
void soft_threshold_backward(const Context&, const Elements&, const Scalars&);

void sign_ste(const Context&, const Elements&, const Scalars&);
void sign_ste_backward(const Context&, const Elements&, const Scalars&);

// (y; x)
void scale(const Context&, const Elements&, const Scalars&);

// (z; x, y)
void add_relu(const Context&, const Elements&);

// (x, weight), memory for sum_blocks partial sums, the sum; then (product; g, factor)
void weighted_sum(const Context&, const Elements&, double* partials, void* sum);
void weighted_sum_backward(const Context&, const Elements&);

// linear: matrix products and sums over rows
void matmul(const Context&, const Product&);
void column_sum(const Context&, const ColumnSum&);

// attention: (x; p), (g, p; gx), (c, g, p; gg, gp)
void masked_softmax(const Context&, const Scores&, const void* x, void* p);
void masked_softmax_backward(const Context&, const Scores&, const void* g, const void* p, void* gx);
void masked_softmax_backward_backward(const Context&, const Scores&, const void* c, const void* g,
                                      const void* p, void* gg, void* gp);

// (input, boxes; output), (grad_output, boxes; grad_input)
void roi_align(const Context&, const RoiAlign&, const void* input, const void* boxes, void* output);
void roi_align_backward(const Context&, const RoiAlign&, const void* grad_output,
                        const void* boxes, void* grad_input);

void layer_norm_forward(const Context&, const LayerNormArguments&);
void layer_norm_workspace(const Context&, const LayerNormArguments&, int64_t& elements);
void layer_norm_backward(const Context&, const LayerNormArguments&);
void layer_norm_backward_backward(const Context&, const LayerNormArguments&);

// (y; logits, noise), then (gx; g, y), then (gg, gy; c, g, y)
void gumbel_softmax(const Context&, const TemperatureArguments&);
void gumbel_softmax_backward(const Context&, const TemperatureArguments&);
void gumbel_softmax_backward_backward(const Context&, const TemperatureArguments&);

// (y; x), then (gx; g, x)
void soft_rank(const Context&, const TemperatureArguments&);
void soft_rank_backward(const Context&, const TemperatureArguments&);

void batch_norm_forward(const Context&, const BatchNormArguments&);
void batch_norm_workspace(const Context&, const BatchNormArguments&, int terms, int64_t& elements);
void batch_norm_backward(const Context&, const BatchNormArguments&);
void batch_norm_backward_backward(const Context&, const BatchNormArguments&);
