// Shift only, and pairs, where the samples of a channel are neighbours in memory and the rows of the
// output begin at multiples of 16 bytes. (For others, see ragged.cu.)
//
// MODE 0 sorts, 1 applies kept bits, 2 undoes them (the gradient). PAIRS 0 only shifts.
//
// A thread makes WIDTH neighbouring samples, one 16-byte word, of CHANNELS channels. The shift
// leaves the input at any offset, so two aligned 16-byte loads are funnelled into one; a warp's
// second loads are its neighbours' first, and hit L1. All loads are issued before any is used. Only
// threads at a wrap or at the end of a row go sample by sample. Sixteen samples hold eight pairs:
// one byte of bits, put together by shuffles.
//
// Bytes: each sample in once and out once, and a bit a pair. The order of channel 0 is a bit a pair
// too, computed once, by a launch of its own (ranks.cu).

constexpr int WIDTH = 16 / BYTES;
constexpr int LANES = 16 / WIDTH;  // threads that share a byte of bits
constexpr u32 ALL = 0xffffffffu;

union __align__(16) Samples {
  u32 words[4];
  Bits at[WIDTH];
};

// The two words that hold samples n, n+1, ... of a row that is shifted by `step`.
struct Raw {
  uint4 a, z;
  int skew;   // where in the first word they begin
  bool fast;  // they lie together in the row, and so do both words
};

// How far to shift: forth, or back where a permutation is undone.
__device__ __forceinline__ int step_of(i64 step, int length) {
  const int forth = length ? wrapped(step, length) : 0;
  return MODE == 2 && forth ? length - forth : forth;
}

__device__ __forceinline__ Raw load(const Bits* row, int n, int step, int length, int samples) {
  Raw raw;
  const int from = n < length ? source(n, step, length) : n;
  raw.skew = (int)((u64)(row + from) % 16) / BYTES;
  raw.fast = n + WIDTH <= length && from + WIDTH <= length && from >= raw.skew &&
             (raw.skew == 0 || from - raw.skew + 2 * WIDTH <= samples);
  const uint4* words = (const uint4*)(row + from - raw.skew);
  if (raw.fast) raw.a = words[0];
  if (raw.fast && raw.skew) raw.z = words[1];
  return raw;
}

__device__ __forceinline__ Samples funnel(const Raw& raw) {
  u32 w[8] = {raw.a.x, raw.a.y, raw.a.z, raw.a.w, raw.z.x, raw.z.y, raw.z.z, raw.z.w};
  const u32 bytes = raw.skew * BYTES;
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

// Sample by sample; those past the length are not shifted.
__device__ __forceinline__ Samples gather(
    const Bits* row, int n, int step, int length, int samples) {
  Samples out;
#pragma unroll
  for (int j = 0; j < WIDTH; ++j) {
    int m = n + j;
    out.at[j] = m < samples ? row[m < length ? source(m, step, length) : m] : (Bits)0;
  }
  return out;
}

#if PAIRS && MODE == 0
// A bit for each pair: its second sample ranks before its first.
__device__ __forceinline__ u32 descending(const Samples& x) {
  u32 bits = 0;
#pragma unroll
  for (int j = 0; j < WIDTH; j += 2) {
    bits |= comes_before(x.at[j + 1], x.at[j]) ? 1u << j / 2 : 0;
  }
  return bits;
}

// The bits of pairs that lie inside the length.
__device__ __forceinline__ u32 inside(int n, int length) {
  const int pairs = (length - n) / 2;
  return pairs >= WIDTH / 2 ? ALL : pairs > 0 ? (1u << pairs) - 1 : 0;
}
#endif

// Exchange the pairs (FROM, FROM + 1), (FROM + 2, FROM + 3), ... that are marked.
template <int FROM> __device__ __forceinline__ void swap_pairs(Samples& x, u32 bits) {
#pragma unroll
  for (int j = FROM; j + 1 < WIDTH; j += 2) {
    const bool swap = bits & 1u << (j + 1) / 2;
    if (BYTES == 2 && FROM == 0) {
      x.words[j / 2] = __byte_perm(x.words[j / 2], 0, swap ? 0x1032 : 0x3210);
    } else {
      const Bits a = x.at[j], z = x.at[j + 1];
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
#endif

extern "C" __global__ void __launch_bounds__(128) rows(
    const Bits* __restrict__ x, i64 x_b, i64 x_c,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    const u8* __restrict__ order, u8* __restrict__ kept,
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
  x += b * x_b;
  y += b * y_b + n;
  kept += (i64)b * channels * units + n / 16;
  const int shift = column % LANES * (WIDTH / 2);  // of this lane's bits in their byte

  u32 wanted = 0;
#if PAIRS && MODE == 0 && REFERENCE
  if (n < samples) wanted = order[(i64)b * units + n / 16] >> shift;
#endif
  Raw raws[CHANNELS];
  u32 marks[CHANNELS];
#pragma unroll
  for (int k = 0; k < CHANNELS; ++k) {
    const int c = c0 + k * lines;
    if (c < channels && n < samples) {
      const int step = step_of(steps[c], length);
      raws[k] = load(x + c * x_c, n, step, length, samples);
#if PAIRS && MODE == 1
      marks[k] = kept[c * units] >> shift;
#elif PAIRS && MODE == 2
      const int from = n < length ? source(n, step, length) : n;
      marks[k] = bits_from(kept + c * units - n / 16, from, units);
#endif
    }
  }
#pragma unroll
  for (int k = 0; k < CHANNELS; ++k) {
    const int c = c0 + k * lines;
    const bool active = c < channels && n < samples;
    u32 bits = 0;
    if (active) {
      const Bits* row = x + c * x_c;
      Samples values;
      if (raws[k].fast) {
        values = funnel(raws[k]);
      } else {
        values = gather(row, n, step_of(steps[c], length), length, samples);
      }
#if PAIRS && MODE == 0
      bits = descending(values) ^ wanted;
      bits &= (1u << WIDTH / 2) - 1;  // of the byte of channel 0, this lane's part
      if (!raws[k].fast) bits &= inside(n, length);
      swap_pairs<0>(values, bits);
#elif PAIRS && MODE == 1
      swap_pairs<0>(values, marks[k]);
#elif PAIRS
      // What is output n was sample `from` of the permuted row, or that one's partner.
      const int step = step_of(steps[c], length);
      const int from = n < length ? source(n, step, length) : n;
      if (n + WIDTH <= length && from + WIDTH <= length) {
        if (from % 2 == 0) {
          swap_pairs<0>(values, marks[k]);
        } else {  // the outermost two have their partners outside
          swap_pairs<1>(values, marks[k]);
          if (marks[k] & 1) values.at[0] = row[from - 1];
          if (marks[k] >> WIDTH / 2 & 1) values.at[WIDTH - 1] = row[from + WIDTH];
        }
      } else {
        const u8* ours = kept + c * units - n / 16;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
          if (n + j < length) {
            int p = source(n + j, step, length);
            values.at[j] = row[p ^ (ours[p / 16] >> p / 2 % 8 & 1)];
          }
        }
      }
#endif
      Bits* to = y + c * y_c;
      if (n + WIDTH <= samples) {
        *(uint4*)to = *(const uint4*)&values;
      } else {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
          if (n + j < samples) to[j] = values.at[j];
        }
      }
    }
#if PAIRS && MODE == 0
    if (KEEP) {
      bits <<= shift;
#pragma unroll
      for (int d = 1; d < LANES; d *= 2) bits |= __shfl_xor_sync(ALL, bits, d);
      if (active && shift == 0) kept[c * units] = (u8)bits;
    }
#endif
  }
}
