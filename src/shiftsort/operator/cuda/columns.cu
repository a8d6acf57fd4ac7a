// Shift only, and pairs, where the channels of a sample are neighbours in memory.
//
// MODE 0 sorts, 1 applies kept bits, 2 undoes them (the gradient). PAIRS 0 only shifts.
//
// Neighbouring channels come from different rows, so reading what a row of the output needs would
// touch a line of memory for each channel. Instead a block takes a tile of `tile` rows of the output
// and a strip of channels 32 bytes wide, loads the whole rows that the strip's shifts reach into
// (the tile, and beyond it the difference between the largest and the smallest shift), and picks
// each channel at its own offset from shared memory. Where shifts differ by too much for that, the
// strip is halved, down to a single channel: slower, never wrong.
//
// Bytes: each sample in once (rows that two tiles reach into come from the L2 cache) and out once,
// in 32-byte sectors; a bit a pair. A block takes STRIPS strips of the same rows one after another,
// so that channel 0, which says the order, is read once for all of them.

constexpr int WIDTH = 32 / BYTES;  // channels in a strip
constexpr int STRIPS = 4;
constexpr int CHUNK = 16;  // rows that a thread takes at a time: a byte of bits
constexpr int FORWARD = 0, APPLY = 1, UNDO = 2;

struct Strip {
  int c, width;      // its channels
  int valid;         // those of them that exist
  int start, reach;  // its rows: the first (modulo the length), and how many
};

// The rows of a strip, into shared memory.
__device__ __forceinline__ void load_rows(
    Bits* held, const Bits* x, i64 x_n, const Strip& strip, int length) {
#if VECTOR
  const int vectors = strip.width * BYTES / 16;
  if (vectors && strip.valid == strip.width) {
    for (int q = threadIdx.x; q < strip.reach * vectors; q += blockDim.x) {
      int i = q / vectors, part = q % vectors, row = strip.start + i;
      row = row < length ? row : strip.reach > length ? row % length : row - length;
      copy_16_bytes(held + i * strip.width + part * (16 / BYTES),
                    x + row * x_n + strip.c + part * (16 / BYTES));
    }
    wait_for_copies();
    return;
  }
#endif
  for (int q = threadIdx.x; q < strip.reach * strip.width; q += blockDim.x) {
    int i = q / strip.width, j = q % strip.width, row = (strip.start + i) % length;
    if (j < strip.valid) held[q] = x[row * x_n + strip.c + j];
  }
}

extern "C" __global__ void __launch_bounds__(256) columns(
    const Bits* __restrict__ x, i64 x_b, i64 x_n,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    u8* __restrict__ kept,
    Bits* __restrict__ y, i64 y_b, i64 y_n,
    i64 samples_, i64 channels_, i64 tiles_, i64 blocks_across, i64 tile_, i64 room_) {
  DYNAMIC_SHARED(memory);
  const int channels = (int)channels_, tile = (int)tile_;
  const i64 at = blockIdx.x / blocks_across;
  const int across = (int)(blockIdx.x % blocks_across);
  const i64 b = at / tiles_;
  const int first = (int)(at % tiles_) * tile, samples = (int)samples_;
  const int rows = min(tile, samples - first);
  const int length = valid_length(lengths, b, samples);
  const int valid_rows = max(0, min(rows, length - first));
  const i64 bytes_a_row = (samples_ + 15) / 16;  // of kept bits, for one channel
  x += b * x_b;
  y += b * y_b;

  Bits* held = (Bits*)memory;
  u8* reference = memory + room_;            // a byte for each chunk
  u8* bits = reference + tile / CHUNK;       // for each channel of the strip, a byte for each chunk
  int* offset = (int*)(bits + WIDTH * (tile / CHUNK + 4));
  const int pitch = tile / CHUNK + 4;

#if PAIRS && MODE == 0 && REFERENCE
  for (int at_once = threadIdx.x / 32 * 32; at_once < tile / 2; at_once += blockDim.x) {
    int pair = at_once + threadIdx.x % 32, n = first + 2 * pair;  // whole warps, for the ballot
    bool swap = n + 1 < length && comes_before(x[(n + 1) * x_n], x[n * x_n]);
    u32 ballot = __ballot_sync(0xffffffffu, swap);
    if (pair % 8 == 0 && pair < tile / 2) reference[pair / 8] = ballot >> threadIdx.x % 32;
  }
#endif

  for (int strip_at = 0; strip_at < STRIPS; ++strip_at) {
    const int c0 = (across * STRIPS + strip_at) * WIDTH;
    if (c0 >= channels) break;
    __syncthreads();
    if (threadIdx.x < WIDTH) {
      int c = c0 + threadIdx.x;
      offset[WIDTH + threadIdx.x] = c < channels && length ? wrapped(steps[c], length) : 0;
    }
    // Rows past the valid length pass through.
    for (int q = threadIdx.x; q < (rows - valid_rows) * WIDTH; q += blockDim.x) {
      int n = first + valid_rows + q / WIDTH, c = c0 + q % WIDTH;
      if (c < channels) y[n * y_n + c] = x[n * x_n + c];
    }
    __syncthreads();

    for (int done = 0, width; done < WIDTH && c0 + done < channels; done += width) {
      // The widest strip whose rows fit.
      const int base = offset[WIDTH + done];
      int low, high, reach;
      for (width = done ? done & -done : WIDTH;; width /= 2) {
        low = high = 0;
        for (int j = 0; j < width && c0 + done + j < channels; ++j) {
          int d = offset[WIDTH + done + j] - base;
          d = d > length / 2 ? d - length : d < -(length / 2) ? d + length : d;
          low = min(low, d);
          high = max(high, d);
        }
        reach = valid_rows + high - low + (MODE == UNDO ? 2 : 0);
        if (width == 1 || (i64)reach * width * BYTES <= room_) break;
      }
      if (valid_rows == 0) reach = 0;
      __syncthreads();
      const Strip strip = {
          c0 + done, width, min(width, channels - c0 - done),
          length ? wrapped(MODE == UNDO ? (i64)first + base + low - 1 : (i64)first - base - high,
                           length)
                 : 0,
          reach};
      if (threadIdx.x < width) {
        int d = offset[WIDTH + done + threadIdx.x] - base;
        d = d > length / 2 ? d - length : d < -(length / 2) ? d + length : d;
        offset[threadIdx.x] = MODE == UNDO ? d - low + 1 : high - d;
      }
      load_rows(held, x, x_n, strip, length);
#if PAIRS && MODE == 2
      // The bits of the rows that this tile comes from: a window of each channel's ring of bytes.
      const int ring = (length + 15) / 16, window = min(tile / CHUNK + 2, ring);
      for (int q = threadIdx.x; q < strip.valid * window; q += blockDim.x) {
        int j = q / window, i = q % window;
        int n = wrapped((i64)first + offset[WIDTH + done + j], length);
        int byte = n / 16 + i;
        byte = byte < ring ? byte : byte - ring;
        bits[j * pitch + i] = kept[(b * channels_ + strip.c + j) * bytes_a_row + byte];
      }
#endif
      __syncthreads();

      const int column = threadIdx.x % width;
      // Half a warp starts with the second of a pair: the two halves then hit different banks.
      const int turn = threadIdx.x / 16 % 2;
      if (column < strip.valid) {
        const i64 c = strip.c + column;
        for (int chunk = threadIdx.x / width; chunk * CHUNK < valid_rows;
             chunk += blockDim.x / width) {
          const int n0 = chunk * CHUNK;
          const Bits* mine = held + (n0 + offset[column]) * width + column;
          Bits* out = y + (first + n0) * y_n + c;
#if MODE < 2
          u32 swaps = 0;
#if PAIRS && MODE == 0
          const u32 order = REFERENCE ? reference[chunk] : 0;
#elif PAIRS
          swaps = kept[(b * channels_ + c) * bytes_a_row + (first + n0) / 16];
#endif
#pragma unroll
          for (int r = 0; r < CHUNK; r += 2) {
            if (n0 + r + 1 < valid_rows) {
              Bits one = mine[(r + turn) * width], two = mine[(r + 1 - turn) * width];
              Bits a = turn ? two : one, z = turn ? one : two;
#if PAIRS && MODE == 0
              bool swap = comes_before(z, a) != (bool)(order >> r / 2 & 1);
              swaps |= (u32)swap << r / 2;
#else
              bool swap = swaps >> r / 2 & 1;
#endif
              out[r * y_n] = swap ? z : a;
              out[(r + 1) * y_n] = swap ? a : z;
            } else if (n0 + r < valid_rows) {
              out[r * y_n] = mine[r * width];
            }
          }
#if PAIRS && MODE == 0 && KEEP
          bits[column * pitch + chunk] = swaps;
#endif
#else
          int n = wrapped((i64)first + n0 + offset[WIDTH + done + column], length);
#if PAIRS
          const int begin = wrapped((i64)first + offset[WIDTH + done + column], length) / 16;
          const int ring_at = n / 16 - begin + (n / 16 < begin ? ring : 0);
          const u8* ours = bits + column * pitch;
          const bool whole = n + CHUNK <= length;
          // Sixteen samples in a row lie in two bytes.
          u32 next = ours[ring_at + 1 < ring ? ring_at + 1 : 0];
          u32 swaps = (ours[ring_at] | next << 8) >> n % 16 / 2;
          const int odd = n & 1;
#pragma unroll
          for (int r = 0; r < CHUNK; ++r) {
            if (n0 + r < valid_rows) {
              int p = n + r, bit;
              if (whole) {
                bit = swaps >> (r + odd) / 2 & 1;
              } else {
                p = p < length ? p : p - length;
                int byte = p / 16 - begin;
                bit = ours[byte < 0 ? byte + ring : byte] >> p / 2 % 8 & 1;
              }
              out[r * y_n] = mine[(r + (p & 1 ? -bit : bit)) * width];
            }
          }
#else
#pragma unroll
          for (int r = 0; r < CHUNK; ++r) {
            if (n0 + r < valid_rows) out[r * y_n] = mine[r * width];
          }
#endif
#endif
        }
      }
#if PAIRS && MODE == 0 && KEEP
      __syncthreads();
      // A channel's bytes are neighbours: out in whole lines. Past the length they are zero.
      const int bytes = (rows + CHUNK - 1) / CHUNK, written = (valid_rows + CHUNK - 1) / CHUNK;
      for (int q = threadIdx.x; q < strip.valid * bytes; q += blockDim.x) {
        int j = q / bytes, i = q % bytes;
        kept[(b * channels_ + strip.c + j) * bytes_a_row + first / CHUNK + i] =
            i < written ? bits[j * pitch + i] : 0;
      }
#endif
    }
  }
}
