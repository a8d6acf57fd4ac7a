// What every kernel here shares: keys that sort as torch.sort does, shifts, valid lengths.
//
// KEY says what is sorted: 0 bfloat16, 1 float16, 2 float32, 3 float64. Without it a kernel only
// moves values of BYTES bytes.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) u8 name[]
#endif

#ifdef KEY
#define BYTES (KEY == 3 ? 8 : KEY == 2 ? 4 : 2)
#endif

template <int SIZE> struct BitsOf;
template <> struct BitsOf<1> { typedef u8 type; };
template <> struct BitsOf<2> { typedef u16 type; };
template <> struct BitsOf<4> { typedef u32 type; };
template <> struct BitsOf<8> { typedef u64 type; };
typedef BitsOf<BYTES>::type Bits;

#ifndef HOST_GPU
__device__ __forceinline__ float half_bits_to_float(u32 bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"((u16)bits));
  return out;
}
#endif

#ifdef KEY
typedef BitsOf<(BYTES < 4 ? 4 : BYTES)>::type Key;
constexpr Key ONES = (Key)~0ull >> (8 * sizeof(Key) - 8 * BYTES);
constexpr Key SIGN = ONES - (ONES >> 1);
constexpr Key INF = KEY == 3 ? (Key)0x7ff0000000000000ull : KEY == 2 ? 0x7f800000u
                    : KEY == 1 ? 0x7c00u : 0x7f80u;

// Unsigned order of keys = order of values: NaN last, -0.0 and 0.0 tied.
__device__ __forceinline__ Key key_of(Key bits) {
  Key magnitude = bits & (SIGN - 1);
  Key key = bits & SIGN ? ~bits & ONES : bits | SIGN;
  key = magnitude == 0 ? SIGN : key;
  return magnitude > INF ? ONES : key;
}

// The same order between two values, by the comparison that the hardware has.
#if KEY == 3
__device__ __forceinline__ double value_of(Key bits) { return __longlong_as_double(bits); }
#elif KEY == 2
__device__ __forceinline__ float value_of(Key bits) { return __uint_as_float(bits); }
#elif KEY == 1
__device__ __forceinline__ float value_of(Key bits) { return half_bits_to_float(bits); }
#else
__device__ __forceinline__ float value_of(Key bits) { return __uint_as_float(bits << 16); }
#endif
template <typename T> __device__ __forceinline__ bool number_before(T a, T z) {
  return !(a >= z) && a == a;  // not (a >= z) holds for a NaN in z, and in a: that one is excluded
}
__device__ __forceinline__ bool comes_before(Key a, Key z) {
  return number_before(value_of(a), value_of(z));
}

// Zeros and NaN share a key, so these two do not tell their bits.
__device__ __forceinline__ bool is_ambiguous(Key key) { return key == SIGN || key == ONES; }

__device__ __forceinline__ Key bits_of(Key key) { return key & SIGN ? key ^ SIGN : ~key & ONES; }
#endif

// The valid samples of a sequence. Out-of-range lengths are clamped: memory stays safe.
__device__ __forceinline__ int valid_length(const i64* lengths, i64 b, int samples) {
  if (lengths == nullptr) return samples;
  i64 length = lengths[b];
  return length < 0 ? 0 : length > samples ? samples : (int)length;
}

// A step modulo the length, in [0, length).
__device__ __forceinline__ int wrapped(i64 step, int length) {
  if ((u64)step < (u64)length) return (int)step;  // nearly always: no division
  int r = (int)(step % length);
  return r < 0 ? r + length : r;
}

// n - step, back into [0, length), for n in [0, length).
__device__ __forceinline__ int source(int n, int step, int length) {
  int from = n - step;
  return from < 0 ? from + length : from;
}

// Where sample n stands in a row. STRIDED 0 says that samples are neighbours, and spares a product.
#if STRIDED
#define AT(n, stride) ((n) * (stride))
#else
#define AT(n, stride) (n)
#endif

// Sixteen bytes from global to shared memory without a stop in registers, and the wait for all of
// a thread's copies. A neighbour's half of the line is fetched into L2 along with it.
__device__ __forceinline__ void copy_16_bytes(void* to, const void* from) {
#ifndef HOST_GPU
  u32 address = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(address), "l"(from));
#else
  *(uint4*)to = *(const uint4*)from;
#endif
}
__device__ __forceinline__ void wait_for_copies() {
#ifndef HOST_GPU
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
