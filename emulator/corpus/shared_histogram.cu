// launch: grid 2 block 64 shared 0 in 256 out 32
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned bins[16];
    unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[in[blockIdx.x * blockDim.x + t] & 15], 1u);
    __syncthreads();
    if (t < 16) out[blockIdx.x * 16 + t] = bins[t];
}
