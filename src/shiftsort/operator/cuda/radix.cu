// Groups of 257 to 16,384 samples, sorted whole in shared memory by least-significant-digit radix.
//
// One block takes one group of one channel: 16 samples a thread, 8 bits a pass, so two passes for
// 16-bit keys and four for 32-bit. Each warp ranks its own 512 samples: lanes with the same digit
// find each other by ballots, and a count for each digit, private to the warp, says how many came
// before. A scan over warps and digits turns ranks into places; the sample moves there with its
// index. The sort is stable, so no index is ever compared.
//
// Bytes: v is read once, y and the 16-bit sources are written once; all else stays on the chip.
// Channel 0 is ranked once by a launch of its own (RANKS), and read by every other channel.

constexpr int ITEMS = 16;
constexpr int RADIX = 256;
constexpr int PASSES = BYTES;

#if KEY == 2
struct Item { u32 key; u32 index; };
#else
typedef u32 Item;  // key above, index below
#endif

// Keep of `peers` the lanes that agree with this one on a bit. In PTX: four instructions, where the
// compiler makes seven of the same in C++.
__device__ __forceinline__ void narrow(u32& peers, u32 digit, u32 bit) {
#ifdef HOST_GPU
  const u32 ballot = __ballot_sync(0xffffffffu, digit & bit);
  peers &= digit & bit ? ballot : ~ballot;
#else
  asm volatile(
      "{ .reg .pred p; .reg .b32 t;\n"
      "  and.b32 t, %1, %2; setp.ne.u32 p, t, 0;\n"
      "  vote.sync.ballot.b32 t, p, 0xffffffff;\n"
      "  @!p not.b32 t, t;\n"
      "  and.b32 %0, %0, t; }"
      : "+r"(peers) : "r"(digit), "r"(bit));
#endif
}

// Lanes whose digit is the same as this lane's: a ballot for each bit.
__device__ __forceinline__ u32 peers_of(u32 digit) {
  u32 peers = 0xffffffffu;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) narrow(peers, digit, 1u << bit);
  return peers;
}

extern "C" __global__ void __launch_bounds__(THREADS, (KEY == 2 && THREADS < 1024 ? 512 : 1024) / THREADS) radix_sort(
    const Bits* __restrict__ v, i64 v_b, i64 v_n, i64 v_c,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    const u16* __restrict__ rank0,
    Bits* __restrict__ y, i64 y_b, i64 y_n, i64 y_c,
    u16* __restrict__ packed,
    i64 samples_, i64 channels_, i64 groups_, i64 group_size_) {
  DYNAMIC_SHARED(memory);
  const int samples = (int)samples_, group_size = (int)group_size_;
  const u32 groups = (u32)groups_;
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int capacity = blockDim.x * ITEMS;
  u32* keys = (u32*)memory;  // 16-bit keys: the whole item
#if KEY == 2
  u16* indices = (u16*)(keys + capacity);
  u16* counts = indices + capacity;
#else
  u16* counts = (u16*)(keys + capacity);
#endif
  u16* firsts = counts + warps * RADIX;  // where each digit starts

  const u32 channels = (u32)channels_;
  const u32 row = blockIdx.x / groups, b = row / channels, c = row % channels;
  const int start = (int)(blockIdx.x % groups) * group_size;
  const int length = valid_length(lengths, b, samples);
  v += b * v_b + c * v_c;
  y += b * y_b + c * y_c;
  packed += (i64)row * samples;
#if REFERENCE
  rank0 += (i64)b * samples + start;
#endif

  const int end = min(start + group_size, samples);
#ifndef RANKS
  for (int n = max(start, length) + threadIdx.x; n < end; n += blockDim.x) {
    y[AT(n, y_n)] = v[AT(n, v_n)];
    if (KEEP) packed[n] = 0;
  }
#endif
  const int size = min(end, length) - start;
  if (size <= 0) return;
  const int step = wrapped(steps[c], length);

  const int first = warp * 32 * ITEMS + lane;
  u32 key[ITEMS];
#if KEY == 2
  u32 index[ITEMS];
#endif
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    int i = first + k * 32;
    // Places past the end take the largest key; being last, they stay last.
    u32 bits = i < size ? v[AT(source(start + i, step, length), v_n)] : 0;
    u32 found = i < size ? key_of(bits) : ONES;
#if KEY == 2
    key[k] = found;
    index[k] = i;
#else
    key[k] = found << 16 | i;
#endif
  }

  u16* count = counts + warp * RADIX;
  const u32 below = (1u << lane) - 1, above = ~below << 1;
#pragma unroll 1
  for (int pass = 0; pass < PASSES; ++pass) {
    const int low = (KEY == 2 ? 0 : 16) + 8 * pass;
    for (int i = lane; i < RADIX / 8; i += 32) ((uint4*)count)[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    u32 rank[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const u32 digit = key[k] >> low & 255;
      const u32 peers = peers_of(digit);
      rank[k] = count[digit] + __popc(peers & below);
      __syncwarp();
      if ((peers & above) == 0) count[digit] = (u16)(rank[k] + 1);  // the last of them
      __syncwarp();
    }
    __syncthreads();
    for (int digit = threadIdx.x; digit < RADIX; digit += blockDim.x) {
      u32 total = 0;
      for (int w = 0; w < warps; ++w) {
        u32 here = counts[w * RADIX + digit];
        counts[w * RADIX + digit] = total;
        total += here;
      }
      firsts[digit] = total;
    }
    __syncthreads();
    if (warp == 0) {
      u32 sum = 0, mine[RADIX / 32];
#pragma unroll
      for (int j = 0; j < RADIX / 32; ++j) {
        mine[j] = sum;
        sum += firsts[lane * (RADIX / 32) + j];
      }
      u32 upto = sum;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, upto, d);
        if (lane >= d) upto += other;
      }
#pragma unroll
      for (int j = 0; j < RADIX / 32; ++j) {
        firsts[lane * (RADIX / 32) + j] = upto - sum + mine[j];
      }
    }
    __syncthreads();
    // Two counts to a word; no sum reaches 2^16.
    for (int i = lane; i < RADIX / 2; i += 32) ((u32*)count)[i] += ((u32*)firsts)[i];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const u32 digit = key[k] >> low & 255;
      const u32 place = count[digit] + rank[k];
      keys[place] = key[k];
#if KEY == 2
      indices[place] = index[k];
#endif
    }
    __syncthreads();
    if (pass + 1 < PASSES) {
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
        key[k] = keys[first + k * 32];
#if KEY == 2
        index[k] = indices[first + k * 32];
#endif
      }
      // No barrier: the next pass writes keys only after two more.
    }
  }

#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = first + k * 32;
    if (i >= size) break;
#ifdef RANKS
    u32 from = KEY == 2 ? ((u16*)(keys + capacity))[i] : keys[i] & 0xffff;
    packed[start + from] = i;
#else
    int rank = REFERENCE ? rank0[i] : i;
#if KEY == 2
    u32 sorted = keys[rank], from = indices[rank];
#else
    u32 sorted = keys[rank] >> 16, from = keys[rank] & 0xffff;
#endif
    u32 bits = bits_of(sorted);
    if (is_ambiguous(sorted)) bits = v[AT(source(start + from, step, length), v_n)];
    y[AT(start + i, y_n)] = bits;
    if (KEEP) packed[start + i] = from;
#endif
  }
}
