// A GPU's threads on the host, one fiber each: enough of CUDA C++ to run the kernels where there is
// no GPU. Blocks run one after another; a fiber yields where it waits for others. Every other block
// runs its threads from the last to the first, so that a barrier that is missing shows whichever way
// the data go. Slow, and exact.

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define HOST_GPU
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __restrict__
#define DYNAMIC_SHARED(name) unsigned char* name = gpu::shared.data()

struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim;

namespace gpu {

constexpr size_t STACK = 256 * 1024;
struct Barrier { unsigned arrived = 0, generation = 0, alive = 0; };

static ucontext_t scheduler;
static std::vector<ucontext_t> fibers;
static std::vector<bool> done;
static std::vector<unsigned char> shared, stacks;
static Barrier block;
static std::vector<Barrier> warps;
static std::vector<unsigned long long> lanes;  // what each thread shows to its warp
static std::function<void()> body;

inline void yield() {
  unsigned me = threadIdx.x;
  swapcontext(&fibers[me], &scheduler);
  threadIdx.x = me;
}

inline void release(Barrier& b) {
  b.arrived = 0;
  ++b.generation;
}

inline void wait(Barrier& b) {
  unsigned generation = b.generation;
  if (++b.arrived == b.alive) return release(b);
  while (b.generation == generation) yield();
}

inline void leave(Barrier& b) {
  if (--b.alive && b.arrived == b.alive) release(b);
}

inline void run_fiber() {
  body();
  unsigned me = threadIdx.x;
  done[me] = true;
  leave(block);
  leave(warps[me / 32]);
  swapcontext(&fibers[me], &scheduler);
}

inline void launch(unsigned blocks, unsigned threads, size_t bytes, std::function<void()> kernel) {
  body = kernel;
  blockDim.x = threads;
  shared.resize(bytes);
  stacks.resize(STACK * threads);
  fibers.resize(threads);
  lanes.assign((threads + 31) / 32 * 32, 0);
  for (unsigned b = 0; b < blocks; ++b) {
    blockIdx.x = b;
    memset(shared.data(), 0xA5, bytes);  // shared memory starts with anything
    block = {0, 0, threads};
    warps.assign((threads + 31) / 32, Barrier{0, 0, 32});
    if (threads % 32) warps.back().alive = threads % 32;
    done.assign(threads, false);
    for (unsigned t = 0; t < threads; ++t) {
      getcontext(&fibers[t]);
      fibers[t].uc_stack.ss_sp = stacks.data() + STACK * t;
      fibers[t].uc_stack.ss_size = STACK;
      fibers[t].uc_link = nullptr;
      makecontext(&fibers[t], run_fiber, 0);
    }
    static bool backwards = false;
    backwards = !backwards;
    for (unsigned left = threads; left;) {
      for (unsigned i = 0; i < threads; ++i) {
        const unsigned t = backwards ? threads - 1 - i : i;
        if (done[t]) continue;
        threadIdx.x = t;
        swapcontext(&scheduler, &fibers[t]);
        if (done[t]) --left;
      }
    }
  }
}

template <typename T> inline T exchange(T value, unsigned from) {
  unsigned me = threadIdx.x;
  Barrier& mine = warps[me / 32];
  lanes[me] = 0;
  memcpy(&lanes[me], &value, sizeof value);
  wait(mine);
  T out;
  memcpy(&out, &lanes[me / 32 * 32 + from], sizeof out);
  wait(mine);
  return out;
}

}  // namespace gpu

inline void __syncthreads() { gpu::wait(gpu::block); }
inline void __syncwarp() { gpu::wait(gpu::warps[threadIdx.x / 32]); }

template <typename T> inline T __shfl_sync(unsigned, T value, int lane) {
  return gpu::exchange(value, lane % 32);
}
template <typename T> inline T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return gpu::exchange(value, (threadIdx.x % 32) ^ mask);
}
template <typename T> inline T __shfl_down_sync(unsigned, T value, unsigned delta) {
  unsigned lane = threadIdx.x % 32;
  return gpu::exchange(value, lane + delta < 32 ? lane + delta : lane);
}
template <typename T> inline T __shfl_up_sync(unsigned, T value, unsigned delta) {
  unsigned lane = threadIdx.x % 32;
  return gpu::exchange(value, lane >= delta ? lane - delta : lane);
}
inline unsigned __ballot_sync(unsigned, bool set) {
  unsigned me = threadIdx.x, out = 0;
  gpu::Barrier& mine = gpu::warps[me / 32];
  gpu::lanes[me] = set;
  gpu::wait(mine);
  for (unsigned j = 0; j < 32; ++j) out |= (unsigned)gpu::lanes[me / 32 * 32 + j] << j;
  gpu::wait(mine);
  return out;
}

inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  uint64_t both = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int j = 0; j < 4; ++j) out |= (unsigned)(both >> (selector >> 4 * j & 7) * 8 & 255) << 8 * j;
  return out;
}
inline float __uint_as_float(unsigned bits) {
  float out;
  memcpy(&out, &bits, 4);
  return out;
}
inline double __longlong_as_double(long long bits) {
  double out;
  memcpy(&out, &bits, 8);
  return out;
}
inline float half_bits_to_float(unsigned bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float size = exponent == 31  ? (mantissa ? NAN : INFINITY)
               : exponent == 0 ? ldexpf((float)mantissa, -24)
                               : ldexpf((float)(1024 + mantissa), exponent - 25);
  return bits & 0x8000 ? -size : size;
}
template <typename T> inline T min(T a, T b) { return b < a ? b : a; }
template <typename T> inline T max(T a, T b) { return a < b ? b : a; }
inline unsigned __vmaxu2(unsigned a, unsigned b) {
  return max(a & 0xffff, b & 0xffff) | max(a >> 16, b >> 16) << 16;
}
inline unsigned __vminu2(unsigned a, unsigned b) {
  return min(a & 0xffff, b & 0xffff) | min(a >> 16, b >> 16) << 16;
}

// Every argument of a kernel is eight bytes wide, so one signature calls them all.
#define LAUNCHER(kernel)                                                                          \
  extern "C" void launch(long long blocks, long long threads, long long bytes, long long* a) {    \
    typedef long long A;                                                                           \
    typedef void (*Any)(A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A);   \
    gpu::launch((unsigned)blocks, (unsigned)threads, (size_t)bytes, [a] {                          \
      ((Any)(void*)kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],      \
                           a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20],   \
                           a[21], a[22], a[23]);                                                   \
    });                                                                                            \
  }
