// launch: grid 2 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned tile[8][9];
    unsigned x = threadIdx.x & 7, y = threadIdx.x >> 3;
    tile[y][x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[x][y];
}
