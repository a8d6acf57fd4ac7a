// A packed permutation applied to any values, or undone: the gradient of every sort.
//
// `permute`: one block takes a run of whole groups of one channel through shared memory (SHORT 0),
// or the whole rows of several channels where these are short (SHORT 1). It reads and writes in the
// order that memory likes, and scatters or gathers only inside. Each value is read once and written
// once, its source is read once.
//
// `permute_directly`: the same for groups that no block can hold. Values are scattered or gathered
// in global memory: a row is small enough that L2 collects what belongs together.

typedef BitsOf<PLACE>::type Place;

constexpr int MOST_ROWS = 32;  // of a block
constexpr int EACH = 8;  // loads in flight, a thread

// Value e of a block: in which of its rows, and where in the run. Of short rows, those values come
// first that are neighbours in memory: a row's samples or, in token-major, a sample's channels.
struct Spot { int row, at; };
__device__ __forceinline__ Spot spot(int e, int rows, int size, u32 inverse) {
  if (!SHORT) return {0, e};
  const int q = (int)__umulhi(e, inverse);
  return STRIDED ? Spot{e - q * rows, q} : Spot{q, e - q * size};
}

extern "C" __global__ void permute(
    const Bits* __restrict__ x, i64 x_b, i64 x_n, i64 x_c,
    const Place* __restrict__ packed,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    Bits* __restrict__ y, i64 y_b, i64 y_n, i64 y_c,
    i64 samples_, i64 channels_, i64 runs_, i64 run_size_, i64 group_size_, i64 inverse_,
    i64 rows_, i64 spot_inverse_, i64 pitch_) {
  DYNAMIC_SHARED(memory);
  int* step = (int*)memory;
  Bits* held = (Bits*)(step + MOST_ROWS);
  const int samples = (int)samples_, run_size = (int)run_size_, group_size = (int)group_size_;
  const u32 inverse = (u32)inverse_;  // 2^32 / group_size, rounded up; 0 for a single group
  const u32 runs = (u32)runs_, channels = (u32)channels_, most = (u32)rows_;
  const u32 down = (channels + most - 1) / most;  // blocks of channels
  const u32 beside = blockIdx.x / runs, b = beside / down, c = beside % down * most;
  const int rows = min(most, channels - c);
  const int start = (int)(blockIdx.x % runs) * run_size;
  const int size = min(run_size, samples - start), pitch = (int)pitch_;
  const int length = valid_length(lengths, b, samples);
  const int valid = min(size, length - start);  // of each row, or less than none
  x += b * x_b + c * x_c;
  y += b * y_b + c * y_c;
  packed += (i64)(b * channels + c) * samples + start;
  const int only = length ? wrapped(steps[c], length) : 0;
#if SHORT
  if (threadIdx.x < rows) step[threadIdx.x] = length ? wrapped(steps[c + threadIdx.x], length) : 0;
  __syncthreads();
#endif
  const auto step_of = [&](int row) { return SHORT ? step[row] : only; };

  const int count = SHORT && STRIDED ? (int)most * size : rows * size;
  for (int first = threadIdx.x; first < count; first += EACH * blockDim.x) {
    Bits values[EACH];
    int places[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int e = first + k * blockDim.x;
      const Spot s = spot(e, most, size, (u32)spot_inverse_);
      if (e >= count || s.row >= rows) continue;
      const int n = start + s.at;
      const bool shifted = !INVERSE && s.at < valid;
      values[k] = x[s.row * x_c + AT(shifted ? source(n, step_of(s.row), length) : n, x_n)];
      if (INVERSE && s.at < valid) places[k] = packed[s.row * samples + s.at];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int e = first + k * blockDim.x;
      const Spot s = spot(e, most, size, (u32)spot_inverse_);
      if (e >= count || s.row >= rows) continue;
      if (s.at >= valid) {
        y[s.row * y_c + AT(start + s.at, y_n)] = values[k];
      } else {
        const int group = (int)__umulhi(s.at, inverse) * group_size;
        held[s.row * pitch + (INVERSE ? group + places[k] : s.at)] = values[k];
      }
    }
  }
  __syncthreads();
#pragma unroll 8
  for (int e = threadIdx.x; e < count; e += blockDim.x) {
    const Spot s = spot(e, most, size, (u32)spot_inverse_);
    if (s.row >= rows || s.at >= valid) continue;
    const int n = start + s.at;
    const int group = (int)__umulhi(s.at, inverse) * group_size;
    const int from = INVERSE ? s.at : group + packed[s.row * samples + s.at];
    const int to = INVERSE ? source(n, step_of(s.row), length) : n;
    y[s.row * y_c + AT(to, y_n)] = held[s.row * pitch + from];
  }
}

extern "C" __global__ void permute_directly(
    const Bits* __restrict__ x, i64 x_b, i64 x_n, i64 x_c,
    const Place* __restrict__ packed,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    Bits* __restrict__ y, i64 y_b, i64 y_n, i64 y_c,
    i64 samples_, i64 channels_, i64 runs_, i64 run_size_, i64 group_size_) {
  const int samples = (int)samples_, run_size = (int)run_size_, group_size = (int)group_size_;
  const u32 runs = (u32)runs_, channels = (u32)channels_;
  const u32 row = blockIdx.x / runs, b = row / channels, c = row % channels;
  const int start = (int)(blockIdx.x % runs) * run_size, end = min(start + run_size, samples);
  const int length = valid_length(lengths, b, samples);
  const int step = length ? wrapped(steps[c], length) : 0;
  x += b * x_b + c * x_c;
  y += b * y_b + c * y_c;
  packed += (i64)row * samples;
  for (int first = start + threadIdx.x; first < end; first += EACH * blockDim.x) {
    int others[EACH];
    Bits values[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int n = first + k * blockDim.x;
      others[k] = n < end && n < length ? packed[n] : 0;
      if (INVERSE && n < end) values[k] = x[AT(n, x_n)];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int n = first + k * blockDim.x;
      const int group = n / group_size * group_size;
      others[k] = n < length ? source(group + others[k], step, length) : n;
      if (!INVERSE && n < end) values[k] = x[AT(others[k], x_n)];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int n = first + k * blockDim.x;
      if (n < end) y[AT(INVERSE ? others[k] : n, y_n)] = values[k];
    }
  }
}
