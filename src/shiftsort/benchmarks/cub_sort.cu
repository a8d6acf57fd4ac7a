// Rows of 16-bit floats sorted by CUB, one block a row, with a 16-bit payload: where each key was.
// Compile with -DKEY=__nv_bfloat16 or -DKEY=__half.

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_store.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace {

template <int THREADS, int ITEMS, int BITS>
using Sort = cub::BlockRadixSort<KEY, THREADS, ITEMS, unsigned short, BITS>;

template <int THREADS, int ITEMS, int BITS>
__global__ __launch_bounds__(THREADS) void sort_rows(KEY *in, KEY *out, unsigned short *source) {
  extern __shared__ __align__(16) char shared[];
  auto &storage =
      *reinterpret_cast<typename Sort<THREADS, ITEMS, BITS>::TempStorage *>(shared);
  const size_t row = size_t(blockIdx.x) * THREADS * ITEMS;
  KEY keys[ITEMS];
  unsigned short from[ITEMS];
  cub::LoadDirectBlockedVectorized(threadIdx.x, in + row, keys);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) from[i] = threadIdx.x * ITEMS + i;
  Sort<THREADS, ITEMS, BITS>(storage).SortBlockedToStriped(keys, from);
  cub::StoreDirectStriped<THREADS>(threadIdx.x, out + row, keys);
  cub::StoreDirectStriped<THREADS>(threadIdx.x, source + row, from);
}

template <int THREADS, int ITEMS, int BITS>
int launch(void *in, void *out, void *source, int rows, cudaStream_t stream) {
  auto kernel = sort_rows<THREADS, ITEMS, BITS>;
  const int bytes = sizeof(typename Sort<THREADS, ITEMS, BITS>::TempStorage);
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) {
    kernel<<<rows, THREADS, bytes, stream>>>(static_cast<KEY *>(in), static_cast<KEY *>(out),
                                             static_cast<unsigned short *>(source));
  }
  return cudaGetLastError();
}

struct Variant {
  int threads, items, bits;
  int (*launch)(void *, void *, void *, int, cudaStream_t);
};

#define VARIANT(THREADS, ITEMS, BITS) {THREADS, ITEMS, BITS, launch<THREADS, ITEMS, BITS>}
#define BOTH(THREADS, ITEMS) VARIANT(THREADS, ITEMS, 4), VARIANT(THREADS, ITEMS, 6)

const Variant variants[] = {
    BOTH(64, 16),  BOTH(128, 8),   BOTH(128, 16),  BOTH(256, 8),  BOTH(256, 16),
    BOTH(512, 8),  BOTH(512, 16),  BOTH(1024, 8),  VARIANT(512, 32, 4), BOTH(1024, 16),
};

}  // namespace

// What variant number `index` is; 0 past the last.
extern "C" int describe_variant(int index, int *threads, int *items, int *bits) {
  if (index >= int(sizeof(variants) / sizeof(variants[0]))) return 0;
  *threads = variants[index].threads;
  *items = variants[index].items;
  *bits = variants[index].bits;
  return 1;
}

// Returns a cudaError_t.
extern "C" int sort_with_variant(int index, void *in, void *out, void *source, int rows,
                                 void *stream) {
  return variants[index].launch(in, out, source, rows, static_cast<cudaStream_t>(stream));
}
