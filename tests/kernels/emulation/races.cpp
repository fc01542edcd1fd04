#include "races.h"

#include "launch.h"

namespace gradlint::emulation {
namespace {

// Whether nothing orders an access of some thread and the one `now`.
bool apart(const Access& earlier, const Access& now, bool shared) {
  if (earlier.block == Access::nobody) return false;
  if (earlier.block != now.block) return !shared;  // what a block shares is not another's
  return earlier.barriers == now.barriers && earlier.thread != now.thread;
}

std::string told(const Access& earlier, const char* did, const Access& now, const char* does) {
  std::string who = "another block";
  if (earlier.block == now.block) {
    who = earlier.thread == Access::several ? "other threads"
                                            : "thread " + std::to_string(earlier.thread);
  }
  const bool same = earlier.block == now.block;
  return std::string("a race: it ") + does + " what " + who + " " + did +
         (same ? " since the last barrier" : "");
}

// The reads so far and one more, as one.
void add(const Access& now, bool shared, Access& reads) {
  if (reads.block == Access::nobody) {
    reads = now;
  } else if (reads.block != now.block) {
    if (shared) {
      reads = now;
    } else {
      reads.block = Access::several;
    }
  } else if (reads.barriers != now.barriers) {
    reads = now;  // the earlier ones are ordered with all that follows
  } else if (reads.thread != now.thread) {
    reads.thread = Access::several;
  }
}

}  // namespace

std::string Races::noted(const Access& now, bool write, bool shared, const void* address,
                         size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t place = first; place < first + size; ++place) {
    Byte& byte = at(place);
    const char* const does = write ? "writes" : "reads";
    if (apart(byte.written, now, shared)) return told(byte.written, "wrote", now, does);
    if (!write) {
      add(now, shared, byte.read);
      continue;
    }
    if (apart(byte.read, now, shared)) return told(byte.read, "read", now, does);
    byte.written = now;
  }
  return "";
}

Races::Byte& Races::at(uintptr_t address) {
  auto& page = pages_[address / page_size];
  if (page == nullptr) page = std::make_unique<std::array<Byte, page_size>>();
  return (*page)[address % page_size];
}

}  // namespace gradlint::emulation

// What code calls that is compiled with -fsanitize=thread (GCC, gcc/sanitizer.def).
#define ACCESSES(size)                                              \
  void __tsan_read##size(void* address) {                           \
    gradlint::emulation::running().access(address, size, false);    \
  }                                                                 \
  void __tsan_write##size(void* address) {                          \
    gradlint::emulation::running().access(address, size, true);     \
  }

extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void* address, size_t size) {
  gradlint::emulation::running().access(address, size, false);
}

void __tsan_write_range(void* address, size_t size) {
  gradlint::emulation::running().access(address, size, true);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
}
