// launch: grid 1 block 32 shared 0 in 256 out 128
// compare: exact
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ __half a[32 * 16], b[16 * 32];
    __shared__ __half d[32 * 8];
    unsigned t = threadIdx.x;
    for (unsigned i = t; i < 512; i += 32) {
        a[i] = __int2half_rn((int)(in[i % 256] & 7) - 3);
        b[i] = __int2half_rn((int)(in[i % 256] >> 5 & 7) - 4);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __half, wmma::col_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, __half> fc;
    wmma::fill_fragment(fc, __float2half(1.0f));
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 8);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, 8, wmma::mem_row_major);
    __syncthreads();
    for (unsigned i = t; i < 128; i += 32) out[i] = ((unsigned *)d)[i];
}
