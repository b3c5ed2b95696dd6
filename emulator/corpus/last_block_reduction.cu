// launch: grid 4 block 64 shared 0 in 256 out 5
// compare: exact
__device__ unsigned finished = 0;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned partial[64];
    __shared__ bool last;
    unsigned t = threadIdx.x;
    partial[t] = in[blockIdx.x * 64 + t] & 0xffff;
    __syncthreads();
    for (unsigned half = 32; half; half /= 2) {
        if (t < half) partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0) {
        out[1 + blockIdx.x] = partial[0];
        __threadfence();
        last = atomicAdd(&finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned sum = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) sum += ((volatile unsigned *)out)[1 + b];
        out[0] = sum;
    }
}
