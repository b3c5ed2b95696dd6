// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned total;
    unsigned t = threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    if (t >= 32) return;
    atomicAdd(&total, in[t] & 255);
    __syncwarp();
    out[t] = total;
}
