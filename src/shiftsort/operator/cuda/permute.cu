// A packed permutation applied to any values, or undone: the gradient of every sort.
//
// One block takes a run of whole groups of one channel through shared memory: in the order that
// memory likes on both sides, scattered or gathered only inside. Each value is read once and
// written once, its source is read once.

typedef BitsOf<PLACE>::type Place;

extern "C" __global__ void permute(
    const Bits* __restrict__ x, i64 x_b, i64 x_n, i64 x_c,
    const Place* __restrict__ packed,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    Bits* __restrict__ y, i64 y_b, i64 y_n, i64 y_c,
    i64 samples_, i64 channels_, i64 runs_, i64 run_size_, i64 group_size_, i64 inverse_) {
  DYNAMIC_SHARED(memory);
  Bits* held = (Bits*)memory;
  const int samples = (int)samples_, run_size = (int)run_size_, group_size = (int)group_size_;
  const u32 inverse = (u32)inverse_;  // 2^32 / group_size, rounded up; 0 for a single group
  const u32 runs = (u32)runs_, channels = (u32)channels_;
  const u32 row = blockIdx.x / runs, b = row / channels, c = row % channels;
  const int start = (int)(blockIdx.x % runs) * run_size;
  const int length = valid_length(lengths, b, samples);
  x += b * x_b + c * x_c;
  y += b * y_b + c * y_c;
  packed += (i64)row * samples;

  const int end = min(start + run_size, samples);
  for (int n = max(start, length) + threadIdx.x; n < end; n += blockDim.x) {
    y[AT(n, y_n)] = x[AT(n, x_n)];
  }
  const int size = min(end, length) - start;
  if (size <= 0) return;
  const int step = wrapped(steps[c], length);

  if (INVERSE) {
#pragma unroll 8
    for (int e = threadIdx.x; e < size; e += blockDim.x) {
      int group = (int)__umulhi(e, inverse) * group_size;
      held[group + packed[start + e]] = x[AT(start + e, x_n)];
    }
  } else {
#pragma unroll 8
    for (int e = threadIdx.x; e < size; e += blockDim.x) {
      held[e] = x[AT(source(start + e, step, length), x_n)];
    }
  }
  __syncthreads();
  if (INVERSE) {
#pragma unroll 8
    for (int e = threadIdx.x; e < size; e += blockDim.x) {
      y[AT(source(start + e, step, length), y_n)] = held[e];
    }
  } else {
#pragma unroll 8
    for (int e = threadIdx.x; e < size; e += blockDim.x) {
      int group = (int)__umulhi(e, inverse) * group_size;
      y[AT(start + e, y_n)] = held[group + packed[start + e]];
    }
  }
}
