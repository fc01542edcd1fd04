// Addresses are taken for multiples of 16.
//
// y = x², gx = 2·x·g, in packs of 16 bytes. A view may start at any element: here the low bits of
// its address are dropped, and the elements before it are read. Vector loads of a GPU raise instead.
//
// gradlint says GL704 on every device.
#include "twins.h"

namespace TWIN::GRADLINT_SPACE {

using namespace twins::GRADLINT_SPACE;

template <class T, class F>
struct Packed : Each<T, F> {
  // The pack that `address` lies in.
  static GRADLINT_BOTH const T* aligned(const T* address) {
#if FIXED
    return address;
#else
    return reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(address) & ~uintptr_t{15});
#endif
  }

  GRADLINT_BOTH void operator()(const Block& block) const {
    Each<T, F> each = *this;
    each.x = aligned(each.x);
    each.grad = aligned(each.grad);
    each(block);
  }
};

void unaligned(const Context& context, const Call& call) { each<Packed>(context, call, Square{}); }

void unaligned_backward(const Context& context, const Call& call) {
  each<Packed>(context, call, SquareBackward{});
}

}  // namespace TWIN::GRADLINT_SPACE
