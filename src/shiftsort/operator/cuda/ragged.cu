// Shift only, and pairs, where the samples of a channel are neighbours in memory but rows do not
// begin at multiples of 16 bytes: lengths that are not a multiple of 8, say. See rows.cu for others.
//
// MODE 0 sorts, 1 applies kept bits, 2 undoes them (the gradient). PAIRS 0 only shifts.
//
// A warp takes 64 neighbouring samples of a run of channels, a lane two of them: a pair. It loads
// them one by one, since the shift leaves them at any offset (64 loads of a warp fall into two
// lines of memory all the same), and stores them together. No offset, length or wrap is a special
// case, so nothing diverges. A ballot gathers the bits of 32 pairs.
//
// Bytes: each sample in once and out once, and a bit a pair, and one for the order of channel 0
// (ranks.cu). What hides the latency is many loads in flight: those of
// UNROLL channels a warp, and many warps, since a thread needs few registers.

constexpr int RUN = 8;
constexpr u32 ALL = 0xffffffffu;

struct __align__(2 * BYTES) Pair { Bits a, z; };

// How far to shift: forth, or back where a permutation is undone.
__device__ __forceinline__ int step_of(i64 step, int length) {
  const int forth = length ? wrapped(step, length) : 0;
  return MODE == 2 && forth ? length - forth : forth;
}

#if PAIRS && MODE == 2
// Where sample p of the permuted row came from: there, or from its partner's place.
__device__ __forceinline__ int partner(const u8* kept, int p) {
  return p ^ (kept[p / 16] >> p / 2 % 8 & 1);
}
#endif

extern "C" __global__ void __launch_bounds__(256) ragged_rows(
    const Bits* __restrict__ x, i64 x_b, i64 x_c,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    const u8* __restrict__ order, u8* __restrict__ kept,
    Bits* __restrict__ y, i64 y_b, i64 y_c,
    i64 samples_, i64 channels_, i64 across_, i64 down_, i64 warps_log) {
  const int samples = (int)samples_, channels = (int)channels_;
  const int bytes_a_row = (samples + 15) / 16;  // of kept bits, for one channel
  // The block's place among tiles of samples, blocks of channels and sequences.
  const u32 across = (u32)across_, down = (u32)down_;
  const u32 tile = blockIdx.x % across, rest = blockIdx.x / across;
  const u32 channel_block = rest % down, b = rest / down;
  // The warp's place in it: 2^warps_log runs of 64 samples, and as many runs of channels as fit.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int unit = (int)(tile << warps_log) + (warp & ((1 << warps_log) - 1));
  const int c0 = ((int)channel_block * (8 >> warps_log) + (warp >> warps_log)) * RUN;
  const int n = unit * 64 + lane * 2;
  const int length = valid_length(lengths, b, samples);
  const bool first = n < samples, second = n + 1 < samples, pair = n + 1 < length;
  x += b * x_b;
  y += b * y_b + n;
  kept += (i64)b * channels * bytes_a_row;

  bool wanted = false;
#if PAIRS && MODE == 0 && REFERENCE
  if (pair) wanted = order[(i64)b * bytes_a_row + n / 16] >> n / 2 % 8 & 1;
#endif
#pragma unroll 1
  for (int c1 = c0; c1 < c0 + RUN; c1 += UNROLL) {
    Pair values[UNROLL];
    bool swaps[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
      const int c = c1 + k;
      if (c >= channels) break;
      const int step = step_of(steps[c], length);
      const Bits* row = x + c * x_c;
      int p = n < length ? source(n, step, length) : n;
      int q = pair ? (p + 1 == length ? 0 : p + 1) : n + 1;
#if PAIRS && MODE == 1
      swaps[k] = pair && kept[c * bytes_a_row + n / 16] >> n / 2 % 8 & 1;
#elif PAIRS && MODE == 2
      p = n < length ? partner(kept + c * bytes_a_row, p) : p;
      q = pair ? partner(kept + c * bytes_a_row, q) : q;
#endif
      if (first) values[k].a = row[p];
      if (second) values[k].z = row[q];
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
      const int c = c1 + k;
      if (c >= channels) break;
      Pair out = values[k];
#if PAIRS && MODE == 0
      swaps[k] = pair && comes_before(out.z, out.a) != wanted;
      if (KEEP) {
        const u32 bits = __ballot_sync(ALL, swaps[k]);
        const int byte = unit * 4 + lane;
        if (lane < 4 && byte < bytes_a_row) kept[c * bytes_a_row + byte] = bits >> 8 * lane;
      }
#endif
#if PAIRS && MODE < 2
      out.a = swaps[k] ? values[k].z : values[k].a;
      out.z = swaps[k] ? values[k].a : values[k].z;
#endif
      Bits* to = y + c * y_c;
      if (ALIGNED && second) {
        *(Pair*)to = out;
      } else {
        if (first) to[0] = out.a;
        if (second) to[1] = out.z;
      }
    }
  }
}
