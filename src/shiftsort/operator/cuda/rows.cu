// Shift only, and pairs, where the samples of a channel are neighbours in memory.
//
// MODE 0 sorts, 1 applies kept bits, 2 undoes them (the gradient). PAIRS 0 only shifts.
//
// A thread makes WIDTH neighbouring samples, one 16-byte word, of CHANNELS channels. The shift
// leaves the input at any offset, so two aligned 16-byte loads are funnelled into one; a warp's
// second loads are its neighbours' first, and hit L1. Where rows of the output are not aligned
// either (ALIGNED 0), each lane joins the end of its word to the beginning of the next lane's, and
// stores that. Only threads at a wrap, an end or the edge of a warp go sample by sample.
// Sixteen samples hold eight pairs: one byte of bits, put together by shuffles.
//
// Bytes: each sample in once and out once, and a bit a pair. Channel 0, which says the order, is
// read once for CHANNELS channels, from cache.

constexpr int WIDTH = 16 / BYTES;
constexpr int LANES = 16 / WIDTH;  // threads that share a byte of bits
constexpr int CHANNELS = 4;
constexpr u32 ALL = 0xffffffffu;

union Samples {
  u32 words[4];
  Bits at[WIDTH];
};

// WIDTH samples of the eight words a, z, beginning with sample `skew` of a.
__device__ __forceinline__ Samples funnel(const u32* a, const u32* z, int skew) {
  u32 w[8];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    w[j] = a[j];
    w[j + 4] = z[j];
  }
  const u32 bytes = skew * BYTES;
#pragma unroll
  for (int j = 0; j < 6; ++j) w[j] = bytes & 8 ? w[j + 2] : w[j];
  if (BYTES < 8) {
#pragma unroll
    for (int j = 0; j < 5; ++j) w[j] = bytes & 4 ? w[j + 1] : w[j];
  }
  Samples out;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    out.words[j] = BYTES < 4 ? __funnelshift_r(w[j], w[j + 1], bytes % 4 * 8) : w[j];
  }
  return out;
}

// How far to shift: forth, or back where a permutation is undone.
__device__ __forceinline__ int step_of(i64 step, int length) {
  const int forth = length ? wrapped(step, length) : 0;
  return MODE == 2 && forth ? length - forth : forth;
}

// Samples n, n+1, ... of a row that is shifted by `step`; those past the length are not shifted.
__device__ __forceinline__ Samples load_shifted(
    const Bits* row, int n, int step, int length, int samples) {
  const int from = n < length ? source(n, step, length) : n;
  const int skew = (int)((u64)(row + from) % 16) / BYTES;
  const bool together = n + WIDTH <= length && from + WIDTH <= length;
  // Both words lie inside the row: nothing is read that is not the caller's.
  const bool inside = from >= skew && (skew == 0 || from - skew + 2 * WIDTH <= samples);
  if (together && inside) {
    const uint4* words = (const uint4*)(row + from - skew);
    uint4 a = words[0], z = skew ? words[1] : a;
    u32 first[4] = {a.x, a.y, a.z, a.w}, second[4] = {z.x, z.y, z.z, z.w};
    return funnel(first, second, skew);
  }
  Samples out;
#pragma unroll
  for (int j = 0; j < WIDTH; ++j) {
    int m = n + j;
    out.at[j] = m < samples ? row[m < length ? source(m, step, length) : m] : (Bits)0;
  }
  return out;
}

// Called by whole warps. Lanes that share a row stand side by side, `lanes` of them.
__device__ __forceinline__ void store(
    Bits* row, int n, int samples, const Samples& values, bool active, int lanes) {
  const int skew = ALIGNED ? 0 : (int)((u64)(row + n) % 16) / BYTES;
  if (!ALIGNED) {
    const int head = WIDTH - skew;  // samples that belong to the word before
    const int lane = threadIdx.x % 32;
    u32 next[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) next[j] = __shfl_down_sync(ALL, values.words[j], 1);
    if (active && skew) {
      if ((lane + 1) % lanes && n + WIDTH + head <= samples) {
        const Samples joined = funnel(values.words, next, head);
        *(uint4*)(row + n + head) = *(const uint4*)&joined;
      } else {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
          if (j >= head && n + j < samples) row[n + j] = values.at[j];
        }
      }
      if (lane % lanes == 0 || n + head > samples) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
          if (j < head && n + j < samples) row[n + j] = values.at[j];
        }
      }
    }
  }
  if (!active || skew) return;
  if (n + WIDTH <= samples) {
    *(uint4*)(row + n) = *(const uint4*)&values;
  } else {
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
      if (n + j < samples) row[n + j] = values.at[j];
    }
  }
}

#if PAIRS && MODE == 0
// A bit for each pair: its second sample ranks before its first.
__device__ __forceinline__ u32 descending(const Samples& x, int n, int length) {
  u32 bits = 0;
#pragma unroll
  for (int j = 0; j < WIDTH; j += 2) bits |= (u32)comes_before(x.at[j + 1], x.at[j]) << j / 2;
  // Pairs that reach past the length stay.
  int pairs = (length - n) / 2;
  return n + WIDTH <= length ? bits : pairs > 0 ? bits & ((1 << pairs) - 1) : 0;
}
#endif

// Exchange the pairs (from, from + 1), (from + 2, from + 3), ... that are marked.
template <int FROM> __device__ __forceinline__ void swap_pairs(Samples& x, u32 bits) {
#pragma unroll
  for (int j = FROM; j + 1 < WIDTH; j += 2) {
    bool swap = bits >> (j + 1) / 2 & 1;
    if (BYTES == 2 && FROM == 0) {
      x.words[j / 2] = __byte_perm(x.words[j / 2], 0, swap ? 0x1032 : 0x3210);
    } else {
      Bits a = x.at[j], z = x.at[j + 1];
      x.at[j] = swap ? z : a;
      x.at[j + 1] = swap ? a : z;
    }
  }
}

#if PAIRS && MODE == 2
// The bits of all pairs in 16 samples from `first`: two bytes, moved to bit 0.
__device__ __forceinline__ u32 bits_from(const u8* kept, int first, int units) {
  const int pair = first / 2;
  const u32 next = pair / 8 + 1 < units ? kept[pair / 8 + 1] : 0;
  return (kept[pair / 8] | next << 8) >> pair % 8;
}

// Output n was sample source(n) of the permuted row, or that one's partner.
__device__ __forceinline__ void unswap(
    Samples& x, const Bits* row, const u8* kept, int n, int step, int length, int units) {
  const int first = n < length ? source(n, step, length) : n;
  if (n + WIDTH <= length && first + WIDTH <= length) {
    const u32 bits = bits_from(kept, first, units);
    if (first % 2 == 0) {
      swap_pairs<0>(x, bits);
    } else {  // the outermost two have their partners outside
      swap_pairs<1>(x, bits);
      if (bits & 1) x.at[0] = row[first - 1];
      if (bits >> WIDTH / 2 & 1) x.at[WIDTH - 1] = row[first + WIDTH];
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < WIDTH; ++j) {
    if (n + j < length) {
      int p = source(n + j, step, length);
      x.at[j] = row[p ^ (kept[p / 16] >> p / 2 % 8 & 1)];
    }
  }
}
#endif

extern "C" __global__ void __launch_bounds__(128) rows(
    const Bits* __restrict__ x, i64 x_b, i64 x_c,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    u8* __restrict__ kept,
    Bits* __restrict__ y, i64 y_b, i64 y_c,
    i64 samples_, i64 channels_, i64 units_, i64 across_, i64 down_, i64 lanes_log) {
  const int samples = (int)samples_, channels = (int)channels_, units = (int)units_;
  // The block's place among tiles of samples, blocks of channels and sequences.
  const u32 across = (u32)across_, down = (u32)down_;
  const u32 tile = blockIdx.x % across, rest = blockIdx.x / across;
  const u32 channel_block = rest % down, b = rest / down;
  // The thread's place in it: 2^lanes_log words of a row, and as many rows as that leaves.
  const int column = threadIdx.x & ((1 << lanes_log) - 1), line = threadIdx.x >> lanes_log;
  const int lines = 128 >> lanes_log;
  const int n = ((int)(tile << lanes_log) + column) * WIDTH;
  const int c0 = (int)channel_block * lines * CHANNELS + line;
  const int length = valid_length(lengths, b, samples);
  const int beside = min(32, 1 << lanes_log);
  x += b * x_b;
  y += b * y_b;
#if PAIRS
  kept += (i64)b * channels_ * units_ + n / 16;
  const int shift = column % LANES * (WIDTH / 2);
#endif

  u32 order = 0;
#if PAIRS && MODE == 0 && REFERENCE
  if (n < samples) order = descending(load_shifted(x, n, 0, length, samples), n, length);
#endif
  Samples values[CHANNELS];
#pragma unroll
  for (int k = 0; k < CHANNELS; ++k) {
    const int c = c0 + k * lines;
    if (c < channels && n < samples) {
      const int step = step_of(steps[c], length);
      values[k] = load_shifted(x + c * x_c, n, step, length, samples);
    }
  }
#pragma unroll
  for (int k = 0; k < CHANNELS; ++k) {
    const int c = c0 + k * lines;
    const bool active = c < channels && n < samples;
    u32 bits = 0;
#if PAIRS
    if (active) {
#if MODE == 0
      bits = descending(values[k], n, length) ^ order;
      swap_pairs<0>(values[k], bits);
#elif MODE == 1
      swap_pairs<0>(values[k], kept[c * units_] >> shift);
#else
      const int step = step_of(steps[c], length);
      unswap(values[k], x + c * x_c, kept - n / 16 + c * units_, n, step, length, units);
#endif
    }
#if MODE == 0
    if (KEEP) {
      bits <<= shift;
#pragma unroll
      for (int d = 1; d < LANES; d *= 2) bits |= __shfl_xor_sync(ALL, bits, d);
      if (active && shift == 0) kept[c * units_] = (u8)bits;
    }
#endif
#endif
    store(y + c * y_c, n, samples, values[k], active, beside);
  }
}
