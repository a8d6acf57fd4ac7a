// Groups of 3 to 1,024 samples (512 for 32-bit keys), sorted in registers.
//
// One warp takes a run of whole groups of one channel. Where rows are short (SHORT 1) it takes whole
// rows of several channels, their groups one after another. Samples come in coalesced and turn in
// shared memory, so that each lane holds neighbours: whole groups of P samples where they fit into
// LANE, else a part of a group that is padded to P, the next power of two. A sample is one word, key
// above and place in the group below, so that words are distinct and any network sorts stably.
// Batcher's odd-even network sorts what one lane holds; larger groups merge across lanes by bitonic
// stages (shuffles). The sorted words turn back in shared memory, where each place fetches the word
// of its rank.
//
// Zeros of both signs and NaN are the only values whose key does not tell their bits. A warp that
// saw a NaN or a -0.0 takes the careful way; the others are spared the checks. Padding is +inf, which
// its place puts behind every number.
//
// Bytes: v is read once, y and the sources are written once. Channel 0 is ranked once by a launch
// of its own (RANKS).

constexpr int LANE = KEY == 2 ? 16 : 32;
constexpr bool WITHIN = P <= LANE;                  // a group lies in one lane
constexpr int ITEMS = WITHIN ? LANE / P * P : LANE;  // samples a lane
constexpr int SPAN = 32 * ITEMS / P;                 // groups a warp

#if KEY == 2
typedef u64 Word;
constexpr int KEY_AT = 32;
#else
typedef u32 Word;
constexpr int KEY_AT = 16;
#endif
typedef BitsOf<P <= 256 ? 1 : 2>::type Place;
constexpr u32 ALL = 0xffffffffu;

// Rows of one lane, an odd number of 16-byte words apart, so that vector accesses do not collide.
__device__ constexpr int pitch(int bytes) { return ((bytes + 15) / 16 | 1) * 16; }
constexpr int IN_PITCH = pitch(ITEMS * sizeof(Bits)) / sizeof(Bits);
constexpr int OUT_PITCH = pitch(ITEMS * sizeof(Word)) / sizeof(Word);
__device__ __forceinline__ int in_at(int slot) { return slot / ITEMS * IN_PITCH + slot % ITEMS; }
__device__ __forceinline__ int out_at(int slot) { return slot / ITEMS * OUT_PITCH + slot % ITEMS; }

__device__ __forceinline__ void exchange(Word& a, Word& b) {
  Word low = min(a, b), high = max(a, b);
  a = low;
  b = high;
}

// Batcher's network over SIZE places from FIRST, of which those from END on do not exist: they would
// hold the largest words, and stay.
template <int SIZE, int APART, int FIRST, int BOUND, int END> struct Merge {
  static __device__ __forceinline__ void run(Word* x) {
    if constexpr (2 * APART < SIZE) {
      Merge<SIZE, 2 * APART, FIRST, BOUND, END>::run(x);
      Merge<SIZE, 2 * APART, FIRST + APART, BOUND, END>::run(x);
#pragma unroll
      for (int i = FIRST + APART; i + APART < BOUND; i += 2 * APART) {
        if (i + APART < END) exchange(x[i], x[i + APART]);
      }
    } else if constexpr (FIRST + APART < END) {
      exchange(x[FIRST], x[FIRST + APART]);
    }
  }
};

template <int SIZE, int FIRST, int END> struct Sort {
  static __device__ __forceinline__ void run(Word* x) {
    if constexpr (SIZE > 1 && FIRST < END) {
      Sort<SIZE / 2, FIRST, END>::run(x);
      Sort<SIZE / 2, FIRST + SIZE / 2, END>::run(x);
      Merge<SIZE, 1, FIRST, FIRST + SIZE, END>::run(x);
    }
  }
};

// Two sorted runs of LANES lanes each become one: mirror, then halve, across lanes and within.
template <int LANES> __device__ __forceinline__ void merge_lanes(Word* x, int lane) {
  const bool upper = lane & LANES;
#pragma unroll
  for (int t = 0; t < LANE / 2; ++t) {
    Word a = __shfl_xor_sync(0xffffffffu, x[LANE - 1 - t], 2 * LANES - 1);
    Word b = __shfl_xor_sync(0xffffffffu, x[t], 2 * LANES - 1);
    x[t] = upper ? max(x[t], a) : min(x[t], a);
    x[LANE - 1 - t] = upper ? max(x[LANE - 1 - t], b) : min(x[LANE - 1 - t], b);
  }
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) {
#pragma unroll
    for (int t = 0; t < LANE; ++t) {
      Word a = __shfl_xor_sync(0xffffffffu, x[t], d);
      x[t] = lane & d ? max(x[t], a) : min(x[t], a);
    }
  }
#pragma unroll
  for (int d = LANE / 2; d > 0; d /= 2) {
#pragma unroll
    for (int t = 0; t < LANE; ++t) {
      if ((t & d) == 0) exchange(x[t], x[t + d]);
    }
  }
}

// All slots hold +inf.
__device__ __forceinline__ void fill_with_padding(Bits* in, int lane) {
  uint4* mine = (uint4*)(in + lane * IN_PITCH);
  const u32 padding = sizeof(Bits) == 4 ? INF : INF << 16 | INF;
#pragma unroll
  for (int j = 0; j < IN_PITCH * (int)sizeof(Bits) / 16; ++j) {
    mine[j] = make_uint4(padding, padding, padding, padding);
  }
  __syncwarp();
}

#if SHORT
// Sample e of several rows: in which it is, and where. Those come first that are neighbours in
// memory: a row's samples or, in token-major, a sample's channels.
constexpr int EACH = 8;  // loads in flight, a lane
struct Spot { int row, n; };
__device__ __forceinline__ Spot spot(int e, int rows, int samples, u32 inverse) {
  const int q = (int)__umulhi(e, inverse);
  return STRIDED ? Spot{e - q * rows, q} : Spot{q, e - q * samples};
}
#endif

extern "C" __global__ void __launch_bounds__(128) sort_groups(
    const Bits* __restrict__ v, i64 v_b, i64 v_n, i64 v_c,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    const Place* __restrict__ rank0,
    Bits* __restrict__ y, i64 y_b, i64 y_n, i64 y_c,
    Place* __restrict__ packed,
    i64 warps, i64 samples_, i64 channels_, i64 group_size_, i64 inverse_, i64 runs_,
    i64 groups_, i64 rows_, i64 spot_inverse_) {
  __shared__ __align__(16) Word staged[4][32 * OUT_PITCH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const u32 run = blockIdx.x * 4 + warp, runs = (u32)runs_, channels = (u32)channels_;
  if (run >= warps) return;
  const int samples = (int)samples_, group_size = WITHIN ? P : (int)group_size_;
  const u32 inverse = (u32)inverse_;  // 2^32 / group_size, rounded up
#if SHORT
  const int most = (int)rows_, groups = (int)groups_;  // rows of a warp, groups of a row
  const u32 b = run / runs, c = run % runs * most;
  const int start = 0, rows = min(most, (int)(channels - c));
#else
  const u32 row = run / runs, b = row / channels, c = row % channels;
  const int start = (int)(run % runs) * SPAN * group_size;
#endif
  const int length = valid_length(lengths, b, samples);
  v += b * v_b + c * v_c;
  y += b * y_b + c * y_c;
  packed += (i64)(b * channels + c) * samples;
#if REFERENCE
  rank0 += (i64)b * samples + start;
#endif
  const bool dense = WITHIN || group_size == P;  // samples stand in slots without gaps
  Bits* in = (Bits*)staged[warp];

#if SHORT
  const int size = length;
  const bool full = dense && rows * length == 32 * ITEMS;  // every slot is taken
  // Lane r knows the step of row r.
  const int my_step = lane < rows && length ? wrapped(steps[c + lane], length) : 0;
  const int count = (STRIDED ? most : rows) * samples;
  if (!full) fill_with_padding(in, lane);
  for (int first = lane; first < count + lane; first += 32 * EACH) {
    Bits values[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int e = first + 32 * k;
      const Spot s = spot(e, most, samples, (u32)spot_inverse_);
      const int step = __shfl_sync(ALL, my_step, s.row);
      if (e >= count || s.row >= rows) continue;
      const int n = s.n < length ? source(s.n, step, length) : s.n;
      values[k] = v[s.row * v_c + AT(n, v_n)];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int e = first + 32 * k;
      const Spot s = spot(e, most, samples, (u32)spot_inverse_);
      if (e >= count || s.row >= rows) continue;
      if (s.n < length) {
        const int g = dense ? s.n / P : __umulhi(s.n, inverse);
        in[in_at((s.row * groups + g) * P + s.n - g * group_size)] = values[k];
      } else {
        y[s.row * y_c + AT(s.n, y_n)] = values[k];
      }
    }
  }
#else
  const int end = min(start + SPAN * group_size, samples);
#ifndef RANKS
  for (int n = max(start, length) + lane; n < end; n += 32) {
    y[AT(n, y_n)] = v[AT(n, v_n)];
    if (KEEP) packed[n] = 0;
  }
#endif
  const int size = min(end, length) - start;
  if (size <= 0) return;
  const int step = wrapped(steps[c], length);
  const bool full = size == 32 * ITEMS;  // every slot is taken
  const int from = source(start, step, length);
  if (full && from + size <= length) {
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      int e = lane + 32 * k;
      in[in_at(e)] = v[AT(from + e, v_n)];
    }
  } else {
    fill_with_padding(in, lane);
#pragma unroll 8
    for (int e = lane; e < size; e += 32) {
      int g = dense ? e / P : __umulhi(e, inverse);
      in[in_at(g * P + e - g * group_size)] = v[AT(source(start + e, step, length), v_n)];
    }
  }
#endif
  __syncwarp();

  // What this lane holds, and whether any lane of the warp holds what the short way may not take.
  constexpr int WORDS = (ITEMS * (int)sizeof(Bits) + 3) / 4;
  u32 words[(WORDS + 3) / 4 * 4];
  {
    const uint4* mine = (const uint4*)(in + lane * IN_PITCH);
#pragma unroll
    for (int j = 0; j < (WORDS + 3) / 4; ++j) {
      uint4 four = mine[j];
      words[4 * j] = four.x;
      words[4 * j + 1] = four.y;
      words[4 * j + 2] = four.z;
      words[4 * j + 3] = four.w;
    }
  }
  bool careful = false;
#if KEY == 2
#pragma unroll
  for (int t = 0; t < ITEMS; ++t) careful |= (words[t] & ~SIGN) > INF || words[t] == SIGN;
#else
  {
    u32 largest = 0, smallest = ALL;  // of two halves side by side
#pragma unroll
    for (int j = 0; j < ITEMS / 2; ++j) {
      largest = __vmaxu2(largest, words[j] & 0x7fff7fff);
      smallest = __vminu2(smallest, words[j] ^ 0x80008000);  // 0 for a -0.0
    }
    if (ITEMS % 2) {
      u32 last = words[ITEMS / 2] & 0xffff;
      largest = __vmaxu2(largest, last & 0x7fff);
      smallest = __vminu2(smallest, last ^ 0xffff8000);
    }
    careful |= (largest & 0xffff) > INF || (largest >> 16) > INF;
    careful |= (smallest & 0xffff) == 0 || (smallest >> 16) == 0;
  }
#endif
  careful = __ballot_sync(ALL, careful) != 0;

  Word x[ITEMS];
  const int first_place = WITHIN ? 0 : lane * LANE % P;  // of this lane in its group
  if (!careful) {
#if KEY == 2
#pragma unroll
    for (int t = 0; t < ITEMS; ++t) {
      u32 key = words[t] ^ ((u32)((int)words[t] >> 31) | SIGN);
      x[t] = (Word)key << KEY_AT | (WITHIN ? t % P : first_place + t);
    }
#else
#pragma unroll
    for (int t = 0; t < ITEMS; ++t) {
      const u32 negative = words[t / 2] >> 15 & 0x00010001;
      const u32 keys = words[t / 2] ^ (negative * 0x7fff | 0x80008000);
      x[t] = (t % 2 ? keys & 0xffff0000 : keys << 16) + (WITHIN ? t % P : first_place + t);
    }
#endif
  } else {
#pragma unroll
    for (int t = 0; t < ITEMS; ++t) {
      const int slot = lane * ITEMS + t;
      const int place = WITHIN ? t % P : first_place + t;
#if SHORT
      const int left = size - slot / P % groups * group_size;
#else
      const int left = size - slot / P * group_size;  // what is valid from this group on
#endif
      u32 bits = sizeof(Bits) == 4 ? words[t] : words[t / 2] >> (t % 2 * 16) & 0xffff;
      u32 key = place < min(left, group_size) ? key_of(bits) : ONES;
      x[t] = (Word)key << KEY_AT | place;
    }
  }

  if constexpr (WITHIN) {
    constexpr int NETWORK = P <= 4 ? 4 : P <= 8 ? 8 : P <= 16 ? 16 : 32;
#pragma unroll
    for (int t = 0; t < ITEMS; t += P) Sort<NETWORK, 0, P>::run(x + t);
  } else {
    Sort<LANE, 0, LANE>::run(x);
    merge_lanes<1>(x, lane);
    if constexpr (P > 2 * LANE) merge_lanes<2>(x, lane);
    if constexpr (P > 4 * LANE) merge_lanes<4>(x, lane);
    if constexpr (P > 8 * LANE) merge_lanes<8>(x, lane);
    if constexpr (P > 16 * LANE) merge_lanes<16>(x, lane);
  }

#ifdef RANKS
#pragma unroll
  for (int t = 0; t < ITEMS; ++t) {
    const int slot = lane * ITEMS + t;
    const int place = (int)(x[t] & 0xffff), g = slot / P;
    if (place < min(size - g * group_size, group_size)) {
      packed[start + g * group_size + place] = slot % P;
    }
  }
#else
  if (!careful) {
#pragma unroll
    for (int t = 0; t < ITEMS; ++t) {
#if KEY == 2
      u32 key = (u32)(x[t] >> 32);
      x[t] ^= (u64)((u32)((int)~key >> 31) | SIGN) << 32;
#else
      x[t] ^= (u32)((int)~x[t] >> 31) & 0x7fff0000 | 0x80000000;
#endif
    }
  } else {
#pragma unroll
    for (int t = 0; t < ITEMS; ++t) {
      const int slot = lane * ITEMS + t;
      u32 key = (u32)(x[t] >> KEY_AT), place = (u32)(x[t] & 0xffff);
      u32 bits = is_ambiguous(key) ? in[in_at(slot / P * P + place)] : bits_of(key);
      x[t] = (Word)bits << KEY_AT | place;
    }
  }
  __syncwarp();  // the values were looked up; the sorted words take their room
  {
    constexpr int EACH = 16 / (int)sizeof(Word);
    uint4* mine = (uint4*)(staged[warp] + lane * OUT_PITCH);
#pragma unroll
    for (int j = 0; j < (ITEMS + EACH - 1) / EACH; ++j) {
      union { Word words[EACH]; uint4 four; } out;
#pragma unroll
      for (int i = 0; i < EACH; ++i) out.words[i] = EACH * j + i < ITEMS ? x[EACH * j + i] : 0;
      mine[j] = out.four;
    }
  }
  __syncwarp();
#if SHORT
  const auto sorted = [&](const Spot& s, int rank) {
    const int g = dense ? s.n / P : __umulhi(s.n, inverse);
    const int place = REFERENCE ? rank : s.n - g * group_size;
    return staged[warp][out_at((s.row * groups + g) * P + place)];
  };
  for (int first = lane; first < count; first += 32 * EACH) {
    int ranks[EACH] = {};
#pragma unroll
    for (int k = 0; REFERENCE && k < EACH; ++k) {
      const Spot s = spot(first + 32 * k, most, samples, (u32)spot_inverse_);
      if (s.n < length) ranks[k] = rank0[s.n];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int e = first + 32 * k;
      const Spot s = spot(e, most, samples, (u32)spot_inverse_);
      if (e >= count || s.row >= rows) continue;
      const Word found = s.n < length ? sorted(s, ranks[k]) : 0;
      if (s.n < length) y[s.row * y_c + AT(s.n, y_n)] = (Bits)(found >> KEY_AT);
      if (KEEP && !STRIDED) packed[e] = (Place)(found & 0xffff);
    }
  }
#if KEEP && STRIDED
  // In one layout, whatever that of y.
  for (Spot s = {0, lane}; s.row < rows; ++s.row) {
#pragma unroll 4
    for (s.n = lane; s.n < samples; s.n += 32) {
      const Word found = s.n < length ? sorted(s, REFERENCE ? rank0[s.n] : 0) : 0;
      packed[s.row * samples + s.n] = (Place)(found & 0xffff);
    }
  }
#endif
#else
  if (full) {
#pragma unroll 16
    for (int k = 0; k < ITEMS; ++k) {
      int e = lane + 32 * k;
      Word found = staged[warp][out_at(REFERENCE ? e / P * P + rank0[e] : e)];
      y[AT(start + e, y_n)] = (Bits)(found >> KEY_AT);
      if (KEEP) packed[start + e] = (Place)(found & 0xffff);
    }
  } else {
#pragma unroll 4
    for (int e = lane; e < size; e += 32) {
      int g = dense ? e / P : __umulhi(e, inverse);
      int rank = REFERENCE ? rank0[e] : e - g * group_size;
      Word found = staged[warp][out_at(g * P + rank)];
      y[AT(start + e, y_n)] = (Bits)(found >> KEY_AT);
      if (KEEP) packed[start + e] = (Place)(found & 0xffff);
    }
  }
#endif
#endif
}
