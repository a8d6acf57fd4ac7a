// Shift only, and pairs, where the channels of a sample are neighbours in memory.
//
// MODE 0 sorts, 1 applies kept bits, 2 undoes them (the gradient). PAIRS 0 only shifts.
//
// Neighbouring channels come from different rows, so reading what a row of the output needs would
// touch a line of memory for each channel. Instead a block takes a tile of `tile` rows of the output
// and a strip of channels 2^STRIP_LOG bytes wide, loads the whole rows that the strip's shifts reach into
// (the tile, and beyond it the difference between the largest and the smallest shift), and picks
// each channel at its own offset from shared memory. Where shifts differ by too much for that, the
// strip is halved, down to a single channel: slower, never wrong.
//
// Bytes: each sample in once (rows that two tiles reach into come from the L2 cache) and out once,
// in 32-byte sectors; a bit a pair. Blocks that are launched side by side take strips side by side,
// so that whole lines of memory are in flight at a time. The order of channel 0 is computed once, by
// a launch of its own (ranks.cu).

constexpr int WIDTH_LOG = STRIP_LOG - (BYTES == 2 ? 1 : BYTES == 4 ? 2 : 3);
constexpr int WIDTH = 1 << WIDTH_LOG;  // channels in a strip
constexpr int CHUNK = 16;  // rows that a thread takes at a time: a byte of bits

struct Strip {
  int c, width;      // its channels, a power of two
  int valid;         // those of them that exist
  int start, reach;  // its rows: the first (modulo the length), and how many
};

// Back into [0, length) from less than two lengths outside.
__device__ __forceinline__ int ringed(int n, int length) {
  n = n < 0 ? n + length : n;
  n = n < 0 ? n + length : n;
  n = n >= length ? n - length : n;
  return n >= length ? n - length : n;
}

// A difference of steps, the short way round.
__device__ __forceinline__ int nearest(int d, int length) {
  return d > length / 2 ? d - length : d < -(length / 2) ? d + length : d;
}

// The rows of a strip, into shared memory.
__device__ __forceinline__ void load_rows(
    Bits* held, const Bits* x, i64 x_n, const Strip& strip, int length) {
  const bool once = strip.reach <= length;  // no row twice: one subtraction wraps
#if VECTOR
  const int bytes = strip.width * BYTES;
  if (bytes >= 16 && strip.valid == strip.width) {
    const int vectors_log = 27 - __clz(bytes);  // 16-byte words in a row: one, two or four
    const int part = (threadIdx.x & ((1 << vectors_log) - 1)) * (16 / BYTES);
    x += strip.c + part;
    held += part;
    for (int i = threadIdx.x >> vectors_log; i < strip.reach; i += blockDim.x >> vectors_log) {
      int row = strip.start + i;
      row = row < length ? row : once ? row - length : row % length;
      copy_16_bytes(held + i * strip.width, x + row * x_n);
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

// The widest strip from channel `done` on whose rows fit into `room` bytes, and where each of its
// channels begins in them. Called by one warp; all its lanes know the answer.
__device__ Strip widest_strip(
    int* offset, const int* step, int c0, int channels, int done, int first, int valid_rows,
    int length, i64 room) {
  const int lane = threadIdx.x % 32, base = step[done];
  for (int width = done ? done & -done : WIDTH;; width /= 2) {
    const int exists = min(width, channels - c0 - done);
    const int d = lane < exists ? nearest(step[done + lane] - base, length) : 0;
    int low = d, high = d;
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      low = min(low, __shfl_xor_sync(0xffffffffu, low, apart));
      high = max(high, __shfl_xor_sync(0xffffffffu, high, apart));
    }
    const int reach = valid_rows ? valid_rows + high - low + (MODE == 2 ? 2 : 0) : 0;
    if (width > 1 && (i64)reach * width * BYTES > room) continue;
    if (lane < exists) offset[lane] = MODE == 2 ? d - low + 1 : high - d;
    const int begin = MODE == 2 ? first + base + low - 1 : first - base - high;
    return {c0 + done, width, exists, length ? ringed(begin, length) : 0, reach};
  }
}

// Sixteen rows of one channel from shared memory to the output; the byte of bits that they make.
// `width_log` is a constant where the strip is whole, and every address an offset then.
__device__ __forceinline__ u32 forward_chunk(
    const Bits* mine, Bits* out, i64 y_n, int rows, u32 marks, int width_log) {
  // Half of the lanes start with the second of a pair: the two halves then hit different banks.
  const int turn = STRIP_LOG == 6 ? threadIdx.x % 2 : threadIdx.x / 16 % 2;
  mine += turn << width_log;
  const int other = (1 - 2 * turn) * (1 << width_log);
  u32 swaps = MODE == 1 ? marks : 0;
#pragma unroll
  for (int r = 0; r < CHUNK; r += 2) {
    if (r + 1 < rows) {
      const Bits one = mine[r << width_log], two = mine[(r << width_log) + other];
      const Bits a = turn ? two : one, z = turn ? one : two;
#if PAIRS && MODE == 0
      const bool swap = comes_before(z, a) != (bool)(marks >> r / 2 & 1);
      swaps |= (u32)swap << r / 2;
#else
      const bool swap = PAIRS && swaps >> r / 2 & 1;
#endif
      out[0] = swap ? z : a;
      out += y_n;
      out[0] = swap ? a : z;
      out += y_n;
    } else if (r < rows) {
      out[0] = mine[(r << width_log) + (turn ? other : 0)];
    }
  }
  return swaps;
}

// The same back: row r comes from place r or, where its pair was swapped, from its partner's.
// `odd` says that the first row is the second of its pair, `swaps` has a bit for each pair.
__device__ __forceinline__ void undo_chunk(
    const Bits* mine, Bits* out, i64 y_n, int rows, u32 swaps, int odd, int width_log) {
#pragma unroll
  for (int r = 0; r < CHUNK; ++r) {
    if (r < rows) {
      const int bit = PAIRS ? swaps >> (r + odd) / 2 & 1 : 0;
      out[0] = mine[(r + ((r + odd) & 1 ? -bit : bit)) << width_log];
      out += y_n;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) columns(
    const Bits* __restrict__ x, i64 x_b, i64 x_n,
    const i64* __restrict__ steps, const i64* __restrict__ lengths,
    const u8* __restrict__ order, u8* __restrict__ kept,
    Bits* __restrict__ y, i64 y_b, i64 y_n,
    i64 samples_, i64 channels_, i64 tiles_, i64 strips_, i64 tile_, i64 room_) {
  DYNAMIC_SHARED(memory);
  const int channels = (int)channels_, tile = (int)tile_, samples = (int)samples_;
  const u32 strips = (u32)strips_, tiles = (u32)tiles_;
  const int c0 = (int)(blockIdx.x % strips) * WIDTH;
  const u32 at = blockIdx.x / strips, b = at / tiles;
  const int first = (int)(at % tiles) * tile;
  const int rows = min(tile, samples - first);
  const int length = valid_length(lengths, b, samples);
  const int valid_rows = max(0, min(rows, length - first));
  const int bytes_a_row = (samples + 15) / 16;  // of kept bits, for one channel
  x += b * x_b;
  y += b * y_b + first * y_n;
  kept += (i64)b * channels_ * bytes_a_row;

  Bits* held = (Bits*)memory;
  Strip* planned = (Strip*)(memory + room_);
  int* offset = (int*)(planned + 1);  // where each channel's rows begin, then its step
  u8* bits = (u8*)(offset + 2 * WIDTH);  // for each channel of the strip, a byte for each chunk
  const int pitch = tile / CHUNK + 4;

  if (threadIdx.x < WIDTH) {
    const int c = c0 + threadIdx.x;
    offset[WIDTH + threadIdx.x] = c < channels && length ? wrapped(steps[c], length) : 0;
  }
  // Rows past the valid length pass through.
  for (int q = threadIdx.x; q < (rows - valid_rows) * WIDTH; q += blockDim.x) {
    const int r = valid_rows + q / WIDTH, c = c0 + q % WIDTH;
    if (c < channels) y[r * y_n + c] = x[(first + r) * x_n + c];
  }

  for (int done = 0; done < WIDTH && c0 + done < channels;) {
    __syncthreads();
    if (threadIdx.x < 32) {
      const Strip found = widest_strip(offset, offset + WIDTH, c0, channels, done, first,
                                       valid_rows, length, room_);
      if (threadIdx.x == 0) *planned = found;
    }
    __syncthreads();
    const Strip strip = *planned;
    const int* step = offset + WIDTH + done;
    load_rows(held, x, x_n, strip, length);
#if PAIRS && MODE == 2
    // The bits of the rows that this tile comes from: a window of each channel's ring of bytes.
    const int ring = (length + 15) / 16, window = min(tile / CHUNK + 2, ring);
    for (int q = threadIdx.x; q < strip.valid * window; q += blockDim.x) {
      const int j = q / window, i = q % window;
      const int byte = ringed(first + step[j], length) / 16 + i;
      bits[j * pitch + i] =
          kept[(i64)(strip.c + j) * bytes_a_row + (byte < ring ? byte : byte - ring)];
    }
#endif
    __syncthreads();

    const int width_log = 31 - __clz(strip.width);
    const int column = threadIdx.x & (strip.width - 1);
    if (column < strip.valid) {
      const i64 c = strip.c + column;
      for (int chunk = threadIdx.x >> width_log; chunk * CHUNK < valid_rows;
           chunk += blockDim.x >> width_log) {
        const int n0 = chunk * CHUNK;
        const Bits* mine = held + ((n0 + offset[column]) << width_log) + column;
        Bits* out = y + n0 * y_n + c;
        const bool fast = strip.width == WIDTH && n0 + CHUNK <= valid_rows;
#if MODE < 2
        u32 marks = 0;
#if PAIRS && MODE == 0 && REFERENCE
        marks = order[(i64)b * bytes_a_row + (first + n0) / CHUNK];
#elif PAIRS && MODE == 1
        marks = kept[c * bytes_a_row + (first + n0) / CHUNK];
#endif
        const u32 swaps =
            fast ? forward_chunk(mine, out, y_n, CHUNK, marks, WIDTH_LOG)
                 : forward_chunk(mine, out, y_n, valid_rows - n0, marks, width_log);
#if PAIRS && MODE == 0 && KEEP
        bits[column * pitch + chunk] = swaps;
#endif
#else
        u32 swaps = 0;
        int odd = 0;
#if PAIRS
        // Sixteen samples in a row lie in two bytes. A wrap joins the last byte to the first.
        const int n = ringed(first + n0 + step[column], length);
        const int begins = ringed(first + step[column], length) / 16;
        const int at = n / 16 - begins + (n / 16 < begins ? ring : 0);
        const u8* ours = bits + column * pitch;
        const u32 here = ours[at], next = ours[at + 1 < ring ? at + 1 : 0];
        odd = n & 1;
        swaps = (here | next << 8) >> n % 16 / 2;
        if (n + CHUNK > length) {  // the tail of the ring, then its head from bit 0 on
          const int tail = length - n;
          undo_chunk(mine, out, y_n, min(tail, valid_rows - n0), swaps, odd, width_log);
          const int head = ringed(-begins, ring);  // where byte 0 stands
          swaps = ours[head] | (u32)ours[head + 1 < ring ? head + 1 : 0] << 8;
          undo_chunk(mine + (tail << width_log), out + tail * y_n, y_n,
                     min(CHUNK, valid_rows - n0) - tail, swaps, 0, width_log);
          continue;
        }
#endif
        if (fast) {
          undo_chunk(mine, out, y_n, CHUNK, swaps, odd, WIDTH_LOG);
        } else {
          undo_chunk(mine, out, y_n, valid_rows - n0, swaps, odd, width_log);
        }
#endif
      }
    }
#if PAIRS && MODE == 0 && KEEP
    __syncthreads();
    // A channel's bytes are neighbours: out in whole lines. Past the length they are zero.
    const int bytes = (rows + CHUNK - 1) / CHUNK, written = (valid_rows + CHUNK - 1) / CHUNK;
    for (int q = threadIdx.x; q < strip.valid * bytes; q += blockDim.x) {
      const int j = q / bytes, i = q % bytes;
      kept[(i64)(strip.c + j) * bytes_a_row + first / CHUNK + i] =
          i < written ? bits[j * pitch + i] : 0;
    }
#endif
    done += strip.width;
  }
}
