// launch: grid 1 block 32 shared 0 in 256 out 256
// compare: exact
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ signed char a[256], b[256];
    unsigned t = threadIdx.x;
    for (unsigned i = t; i < 256; i += 32) { a[i] = in[i]; b[i] = in[i] >> 8; }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 5);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync((int *)out, fc, 16, wmma::mem_row_major);
}
