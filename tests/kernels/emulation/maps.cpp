// Element by element, in packs.
#include "common/map.h"
#include "trials.h"

namespace gradlint::cpu {
namespace {

struct Doubled {
  template <class W>
  void operator()(const W (&in)[1], W (&out)[1]) const {
    out[0] = 2 * in[0];
  }
};

// What stands behind the elements stays as it was. The first is `shift` elements from where an
// access of 16 bytes may begin.
std::string mapped(int64_t shift) {
  constexpr int64_t count = 2501, behind = 4096, most_shift = 3;
  static_assert((count + behind + most_shift) % 4 == 0, "both arrays begin where a pack may");
  alignas(16) static float memory[2][count + behind + most_shift];
  float *const in = memory[0] + shift, *const out = memory[1] + shift;
  Floats expected(count + behind, -1);
  for (int64_t i = 0; i < count + behind; ++i) in[i] = whole(i), out[i] = -1;
  for (int64_t i = 0; i < count; ++i) expected[i] = 2 * whole(i);
  Elements elements{};
  elements.dtype = Dtype::float32;
  elements.operands = 2;
  elements.axes = 1;
  elements.count = elements.shape[0] = count;
  elements.strides[0][0] = elements.strides[1][0] = 1;
  elements.data[0] = out;
  elements.data[1] = in;
  map<1, 1>(context, elements, Doubled{});
  return compared(Floats(out, out + count + behind), expected);
}

const Trials trials = {
    {"map", [] { return mapped(0); }},
    {"map of what is not aligned", [] { return mapped(1); }},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
