// launch: grid 1 block 32 shared 0 in 256 out 256
// compare: exact
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ __half a[256], b[256];
    __shared__ float c[256];
    unsigned t = threadIdx.x;
    for (unsigned i = t; i < 256; i += 32) {
        a[i] = __int2half_rn((int)(in[i] & 15) - 8);
        b[i] = __int2half_rn((int)(in[i] >> 4 & 15) - 8);
        c[i] = (float)(in[i] >> 8 & 31);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync((float *)out, fc, 16, wmma::mem_col_major);
}
