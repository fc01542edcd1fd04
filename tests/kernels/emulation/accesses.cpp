// Accesses to memory that are races, and others that are none.
#include "trials.h"

namespace gradlint::cpu {
namespace {

// `blocks` blocks of two warps that run body(block, shared, global), each an array of `Cell`.
template <class Cell = float, class Body>
auto accesses(Body body, int64_t blocks = 1) {
  return [=] {
    std::vector<Cell> global(256);
    launch(context, blocks, 64, 64 * sizeof(Cell), [&](const Block& block) {
      body(block, static_cast<Cell*>(block.memory), global.data());
    });
    return std::string("right");
  };
}

const Trials trials = {
    {"elements of their own", accesses([](const Block& block, float* shared, float* global) {
       shared[block.thread] = global[block.thread] = 1;
       global[block.thread] += shared[block.thread];
     })},
    {"neighbouring bytes", accesses<char>([](const Block& block, char* shared, char*) {
       shared[block.thread] = 1;
     })},
    {"read after a barrier", accesses([](const Block& block, float* shared, float* global) {
       shared[block.thread] = 1;
       block.sync();
       global[block.thread] = shared[block.thread ^ 1];
     })},
    {"written after a barrier", accesses([](const Block& block, float* shared, float* global) {
       shared[block.thread] = 1;
       block.sync();
       global[block.thread] = shared[block.thread ^ 1];
       block.sync();
       shared[block.thread] = 2;
     })},
    {"read by all", accesses([](const Block& block, float*, float* global) {
       global[1 + block.index * block.threads + block.thread] = global[0];
     }, 3)},
    {"shared memory of two blocks", accesses([](const Block& block, float* shared, float*) {
       shared[block.thread] += 1;
     }, 2)},
    {"exchanged", accesses([](const Block& block, float*, float* global) {
       atomicExch(global, static_cast<float>(block.thread));
     }, 2)},
    {"read before a barrier", accesses([](const Block& block, float* shared, float* global) {
       shared[block.thread] = 1;
       global[block.thread] = shared[block.thread ^ 1];
     })},
    {"written before a barrier", accesses([](const Block& block, float* shared, float* global) {
       shared[block.thread] = 1;
       block.sync();
       global[block.thread] = shared[block.thread ^ 1];
       shared[block.thread] = 2;
     })},
    {"added to by all", accesses([](const Block&, float*, float* global) { global[0] += 1; })},
    {"written by two blocks", accesses([](const Block& block, float*, float* global) {
       if (block.thread == 0) global[0] = 1;
     }, 2)},
    {"written once others have read", accesses([](const Block& block, float*, float* global) {
       if (block.thread > 0) global[1 + block.index * block.threads + block.thread] = global[0];
       block.sync();
       if (block.thread == 0) global[0] = 1;
     }, 2)},
    {"part of another's", accesses([](const Block& block, float* shared, float*) {
       if (block.thread == 0) shared[0] = 1;
       if (block.thread == 1) reinterpret_cast<char*>(shared)[3] = 1;
     })},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
