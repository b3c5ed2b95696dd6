// launch: grid 2 block 64 shared 256 in 256 out 128
// compare: exact
extern __shared__ unsigned buffer[];
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    buffer[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = buffer[blockDim.x - 1 - t];
}
