#include "order.h"

namespace gradlint::emulation {
namespace {

int lowest(uint32_t bits) { return __builtin_ctz(bits); }

int highest(uint32_t bits) { return 31 - __builtin_clz(bits); }

}  // namespace

int ThreadSet::first() const {
  const int warp = lowest(warps_);
  return warp * word + lowest(lanes_[warp]);
}

int ThreadSet::last() const {
  const int warp = highest(warps_);
  return warp * word + highest(lanes_[warp]);
}

int ThreadSet::first_from(int thread) const {
  const int warp = thread / word;
  const uint32_t here = lanes_[warp] & ~uint32_t{0} << thread % word;
  if (here != 0) return warp * word + lowest(here);
  const uint32_t behind = warps_ & ~uint32_t{1} << warp;
  if (behind == 0) return first();
  return lowest(behind) * word + lowest(lanes_[lowest(behind)]);
}

int Order::chosen(const ThreadSet& set) {
  switch (kind_) {
    case Kind::ascending:
      return set.first();
    case Kind::descending:
      return set.last();
    case Kind::shuffled:
      return set.first_from(static_cast<int>(random_() % (set.last() + 1)));
  }
  return set.first();
}

int64_t Order::block(int64_t i, int64_t count) const {
  switch (kind_) {
    case Kind::ascending:
      return i;
    case Kind::descending:
      return count - 1 - i;
    case Kind::shuffled:
      return i % 2 == 0 ? i / 2 : count - 1 - i / 2;  // from both ends
  }
  return i;
}

}  // namespace gradlint::emulation
