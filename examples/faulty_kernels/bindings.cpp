// The twins as operators torch.ops.faulty.* and torch.ops.mended.*: y = f(x), once differentiable.
//
// Three of the faults are in here: `dense_grad`, `guarded` and `shared_workspace`, each explained in
// the file of its twin.
#ifdef WITH_CUDA
#define GRADLINT_CUDA
#endif
#include "bind/common.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include "twins.h"

#define TWINS(each)                                                                     \
  each(atomic_winner) each(contiguous_grad) each(divergent_barrier)                     \
  each(half_accumulation) each(missing_guard) each(missing_sync) each(out_of_bounds)    \
  each(overflow) each(racing_reduction) each(stale_workspace) each(tail) each(unaligned) \
  each(uninitialised) each(wrong_stream)

#define DECLARE_IN(space, name)                                    \
  namespace space {                                                \
  void name(const gradlint::Context&, const Call&);                \
  void name##_backward(const gradlint::Context&, const Call&);     \
  }
#define DECLARE(name)               \
  DECLARE_IN(faulty::cpu, name)     \
  DECLARE_IN(faulty::cuda, name)    \
  DECLARE_IN(mended::cpu, name)     \
  DECLARE_IN(mended::cuda, name)
TWINS(DECLARE)

namespace {

using at::Tensor;
using gradlint::bind::AutogradContext;
using gradlint::bind::variable_list;
using Kernel = void (*)(const gradlint::Context&, const Call&);

enum class Shape { same, rows, columns };

struct Twin {
  const char* name;
  Kernel forward[2], backward[2];  // for the CPU and for CUDA
  Shape shape = Shape::same;       // of the output, by that of the matrix x
  bool dense_grad = true;          // whether backward looks at the strides of grad_output
  bool guarded = true;             // whether the GPU of the tensors is made the current one
  bool workspace = false, shared_workspace = false;
};

#ifdef WITH_CUDA
#define KERNELS(space, name) {space::cpu::name, space::cuda::name}
#else
#define KERNELS(space, name) {space::cpu::name, nullptr}
#endif
#define FAULTY(name) Twin{#name, KERNELS(faulty, name), KERNELS(faulty, name##_backward)},
#define MENDED(name) Twin{#name, KERNELS(mended, name), KERNELS(mended, name##_backward)},

std::vector<Twin> with_traits(std::vector<Twin> twins, bool fixed) {
  for (Twin& twin : twins) {
    const std::string name = twin.name;
    if (name == "tail" || name == "racing_reduction" || name == "missing_sync" ||
        name == "divergent_barrier") {
      twin.shape = Shape::rows;
    }
    if (name == "atomic_winner") twin.shape = Shape::columns;
    twin.workspace = name == "stale_workspace";
    twin.dense_grad = fixed || name != "contiguous_grad";
    twin.guarded = fixed || name != "missing_guard";
    twin.shared_workspace = !fixed && twin.workspace;
  }
  return twins;
}

constexpr const char* spaces[] = {"faulty", "mended"};
const std::vector<Twin> twins[] = {with_traits({TWINS(FAULTY)}, false),
                                   with_traits({TWINS(MENDED)}, true)};
#define ONE(name) +1
constexpr int count = TWINS(ONE);

Tensor workspace_for(const Twin& twin, const Tensor& x) {
  if (!twin.shared_workspace) return at::empty_like(x);
  static Tensor kept;
  if (!kept.defined() || kept.sizes() != x.sizes() || !kept.options().type_equal(x.options())) {
    kept = at::zeros_like(x);
  }
  return kept;
}

gradlint::Context context_for(const Twin& twin, const Tensor& x) {
#ifdef WITH_CUDA
  if (x.is_cuda() && !twin.guarded) {
    return gradlint::bind::cuda_context(c10::cuda::current_device());
  }
#endif
  return gradlint::bind::context_of(x);
}

void run(const Twin& twin, const Kernel (&kernels)[2], const Tensor* grad, const Tensor& given,
         Tensor& result) {
  if (given.is_meta() || given.numel() == 0) {
    result.zero_();  // a sum over nothing
    return;
  }
  c10::OptionalDeviceGuard guard;
  if (twin.guarded) guard.reset_device(given.device());
  const Tensor x = given.contiguous();
  Tensor workspace = twin.workspace ? workspace_for(twin, x) : Tensor();
  Call call{};
  call.dtype = gradlint::bind::dtype_of(x);
  call.columns = x.size(-1);
  call.rows = x.numel() / call.columns;
  call.grad = grad != nullptr ? grad->const_data_ptr() : nullptr;
  call.x = x.const_data_ptr();
  call.workspace = workspace.defined() ? workspace.data_ptr() : nullptr;
  call.result = result.data_ptr();
  kernels[x.is_cuda() ? 1 : 0](context_for(twin, x), call);
}

Tensor forward(int space, int index, const Tensor& x) {
  const Twin& twin = twins[space][index];
  gradlint::bind::check_floating(twin.name, "x", x);
  TORCH_CHECK(x.dim() == 2, spaces[space], "::", twin.name, ": `x` must be a matrix, got ", x.dim(),
              " axes");
  Tensor y = twin.shape == Shape::rows      ? at::empty_symint({x.sym_size(0)}, x.options())
             : twin.shape == Shape::columns ? at::empty_symint({x.sym_size(1)}, x.options())
                                            : at::empty_symint(x.sym_sizes(), x.options());
  run(twin, twin.forward, nullptr, x, y);
  return y;
}

Tensor backward(int space, int index, const Tensor& grad, const Tensor& x) {
  const Twin& twin = twins[space][index];
  Tensor result = at::empty_symint(x.sym_sizes(), x.options());
  const Tensor dense = twin.dense_grad ? grad.contiguous() : grad;
  run(twin, twin.backward, &dense, x, result);
  return result;
}

std::string operator_name(int64_t space, int64_t index) {
  return std::string(spaces[space]) + "::" + twins[space][index].name;
}

struct Differentiable : torch::autograd::Function<Differentiable> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t space, int64_t index) {
    ctx->save_for_backward({x});
    ctx->saved_data["name"] = operator_name(space, index);
    const at::AutoDispatchBelowADInplaceOrView below;
    return c10::Dispatcher::singleton()
        .findSchemaOrThrow(operator_name(space, index).c_str(), "")
        .typed<Tensor(const Tensor&)>()
        .call(x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const std::string name = ctx->saved_data["name"].toStringRef() + "_backward";
    return {c10::Dispatcher::singleton()
                .findSchemaOrThrow(name.c_str(), "")
                .typed<Tensor(const Tensor&, const Tensor&)>()
                .call(grads[0], ctx->get_saved_variables()[0]),
            Tensor(), Tensor()};
  }
};

template <int Space, int Index>
void compute(torch::Library& m) {
  const std::string name = twins[Space][Index].name;
  m.impl(name.c_str(), +[](const Tensor& x) { return forward(Space, Index, x); });
  m.impl((name + "_backward").c_str(),
         +[](const Tensor& grad, const Tensor& x) { return backward(Space, Index, grad, x); });
}

template <int Space, int Index>
void differentiate(torch::Library& m) {
  const std::string name = twins[Space][Index].name;
  m.impl(name.c_str(), +[](const Tensor& x) { return Differentiable::apply(x, Space, Index); });
  m.impl((name + "_backward").c_str(), torch::autograd::autogradNotImplementedFallback());
}

template <int Space>
void define(torch::Library& m) {
  for (const Twin& twin : twins[Space]) {
    m.def((std::string(twin.name) + "(Tensor x) -> Tensor").c_str());
    m.def((std::string(twin.name) + "_backward(Tensor grad_output, Tensor x) -> Tensor").c_str());
  }
}

template <int Space, int... Index>
void compute_each(torch::Library& m, std::integer_sequence<int, Index...>) {
  (compute<Space, Index>(m), ...);
}

template <int Space, int... Index>
void differentiate_each(torch::Library& m, std::integer_sequence<int, Index...>) {
  (differentiate<Space, Index>(m), ...);
}

using All = std::make_integer_sequence<int, count>;

}  // namespace

#define REGISTER(name, space)                                                           \
  TORCH_LIBRARY(name, m) { define<space>(m); }                                          \
  TORCH_LIBRARY_IMPL(name, CPU, m) { compute_each<space>(m, All{}); }                   \
  TORCH_LIBRARY_IMPL(name, CUDA, m) { compute_each<space>(m, All{}); }                  \
  TORCH_LIBRARY_IMPL(name, Meta, m) { compute_each<space>(m, All{}); }                  \
  TORCH_LIBRARY_IMPL(name, Autograd, m) { differentiate_each<space>(m, All{}); }

REGISTER(faulty, 0)
REGISTER(mended, 1)
