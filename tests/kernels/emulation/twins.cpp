// The faulty twins of examples/faulty_kernels and the mended ones, against what they should give.
#include <sys/mman.h>

#include <limits>

#include "trials.h"
#include "twins.h"

#define TWINS(each)                                                                            \
  each(atomic_winner, last_row) each(divergent_barrier, row_squares)                           \
  each(missing_sync, row_squares) each(out_of_bounds, differences)                             \
  each(racing_reduction, row_squares) each(tail, row_squares) each(unaligned, squares)         \
  each(uninitialised, positive)

#define DECLARE_IN(space, name)                                 \
  namespace space::cpu {                                        \
  void name(const gradlint::Context&, const Call&);             \
  void name##_backward(const gradlint::Context&, const Call&);  \
  }
#define DECLARE(name, formula) DECLARE_IN(faulty, name) DECLARE_IN(mended, name)
TWINS(DECLARE)
DECLARE(overflow, )

namespace gradlint::cpu {
namespace {

using Kernel = void (*)(const Context&, const Call&);

// Of x; no whole number of packs, of groups or of rounds of a block's threads.
constexpr int64_t rows = 4, columns = 1003, count = rows * columns;

// Doubles that no pack begins at, with NaN before and behind.
class Guarded {
 public:
  explicit Guarded(int64_t count)
      : count_(count), buffer_(count + 2, std::numeric_limits<double>::quiet_NaN()) {}

  double* data() { return buffer_.data() + 1; }
  Floats floats() { return Floats(data(), data() + count_); }

 private:
  int64_t count_;
  std::vector<double> buffer_;
};

// y and the gradient of x, from x and g.
struct Formula {
  int64_t outputs;
  std::function<void(const Floats& x, const Floats& g, Floats& y, Floats& gx)> body;
};

const Formula squares{count, [](const Floats& x, const Floats& g, Floats& y, Floats& gx) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * x[i], gx[i] = 2 * x[i] * g[i];
}};

const Formula row_squares{rows, [](const Floats& x, const Floats& g, Floats& y, Floats& gx) {
  for (int64_t i = 0; i < count; ++i) {
    y[i / columns] += x[i] * x[i];
    gx[i] = 2 * x[i] * g[i / columns];
  }
}};

const Formula last_row{columns, [](const Floats& x, const Floats& g, Floats& y, Floats& gx) {
  for (int64_t c = 0, i = count - columns; i < count; ++c, ++i) y[c] = x[i], gx[i] = g[c];
}};

const Formula differences{count, [](const Floats& x, const Floats& g, Floats& y, Floats& gx) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] - (i > 0 ? x[i - 1] : 0);
    gx[i] = g[i] - (i + 1 < count ? g[i + 1] : 0);
  }
}};

const Formula positive{count, [](const Floats& x, const Floats& g, Floats& y, Floats& gx) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0, gx[i] = x[i] > 0 ? g[i] : 0;
}};

// What becomes of forward and backward.
auto trial(Kernel forward, Kernel backward, const Formula& formula) {
  return [=] {
    Guarded x(count), g(formula.outputs), y(formula.outputs), gx(count);
    for (int64_t i = 0; i < count; ++i) x.data()[i] = whole(i);
    for (int64_t i = 0; i < formula.outputs; ++i) g.data()[i] = whole(3 * i + 1);
    Floats expected_y(formula.outputs), expected_gx(count);
    formula.body(x.floats(), g.floats(), expected_y, expected_gx);
    Call call{};
    call.rows = rows;
    call.columns = columns;
    call.x = x.data();
    call.result = y.data();
    forward(context, call);
    const std::string result = compared(y.floats(), expected_y);
    if (result != "right") return result;
    call.grad = g.data();
    call.result = gx.data();
    backward(context, call);
    return compared(gx.floats(), expected_gx);
  };
}

// The square of the last elements beyond 2³¹: memory of which hardly any is touched.
auto far(Kernel forward) {
  return [=] {
    constexpr int64_t blocks = 2, last = 2048, count = (int64_t{1} << 31) + last;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    Half* memory[2];
    for (Half*& place : memory) {
      void* const mapped =
          mmap(nullptr, count * sizeof(Half), PROT_READ | PROT_WRITE, flags, -1, 0);
      if (mapped == MAP_FAILED) throw std::bad_alloc();
      place = static_cast<Half*>(mapped);
    }
    const auto [x, y] = memory;
    Floats result, expected;
    for (int64_t i = count - last; i < count; ++i) {
      x[i] = narrowed<Half>(whole(i));
      expected.push_back(whole(i) * whole(i));
    }
    Call call{};
    call.dtype = Dtype::float16;
    call.rows = 1;
    call.columns = count;
    call.x = x;
    call.result = y;
    emulation_last_blocks(blocks);
    forward(context, call);
    for (int64_t i = count - last; i < count; ++i) result.push_back(widened(y[i]));
    for (Half* const place : memory) munmap(place, count * sizeof(Half));
    return compared(result, expected);
  };
}

#define TRIAL_IN(space, name, formula) \
  {#space " " #name, trial(::space::cpu::name, ::space::cpu::name##_backward, formula)},
#define TRIAL(name, formula) TRIAL_IN(faulty, name, formula) TRIAL_IN(mended, name, formula)

const Trials trials = {
    TWINS(TRIAL)
    {"faulty overflow", far(::faulty::cpu::overflow)},
    {"mended overflow", far(::mended::cpu::overflow)},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
