// What the other channels need to know of channel 0, computed once for all of them.
//
// Channel 0 is one part in C of the work: these two take a few microseconds, and every other channel
// reads the answer from cache.

// A byte for 16 samples: which of their pairs are descending.
extern "C" __global__ void __launch_bounds__(256) order_of_pairs(
    const Bits* __restrict__ v, i64 v_b, i64 v_n, const i64* __restrict__ lengths,
    u8* __restrict__ order, i64 samples, i64 pairs, i64 count) {
  const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  const u32 b = (u32)(i / pairs), n = 2 * (u32)(i - b * pairs);
  bool swap = false;
  if (i < count && n + 1 < (u32)valid_length(lengths, b, (int)samples)) {
    const Bits* pair = v + b * v_b + n * v_n;
    swap = comes_before(pair[v_n], pair[0]);
  }
  const u32 ballot = __ballot_sync(0xffffffffu, swap);
  if (i < count && i % 8 == 0) order[i / 8] = ballot >> threadIdx.x % 32;
}

// The rank of each sample in its group, by counting those that come before it: one thread a sample,
// for groups that are small enough to count through.
extern "C" __global__ void __launch_bounds__(256) count_ranks(
    const Bits* __restrict__ v, i64 v_b, i64 v_n, const i64* __restrict__ lengths,
    u8* __restrict__ ranks, i64 samples_, i64 group_size_, i64 count) {
  const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  const u32 samples = (u32)samples_, group_size = (u32)group_size_;
  const u32 b = (u32)(i / samples_), n = (u32)(i - b * samples_);
  const u32 length = valid_length(lengths, b, samples);
  if (n >= length) return;
  v += b * v_b;
  const u32 start = n / group_size * group_size, end = min(start + group_size, length);
  const Key mine = key_of(v[n * v_n]);
  u32 rank = 0;
#pragma unroll 8
  for (u32 m = start; m < end; ++m) {
    const Key other = key_of(v[m * v_n]);
    rank += other < mine || (other == mine && m < n);
  }
  ranks[i] = rank;
}
