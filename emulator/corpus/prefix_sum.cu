// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned sums[2];
    unsigned t = threadIdx.x, lane = t & 31, x = in[t] & 0xfff;
    for (int step = 1; step < 32; step <<= 1) {
        unsigned y = __shfl_up_sync(0xffffffff, x, step);
        if (lane >= step) x += y;
    }
    if (lane == 31) sums[t / 32] = x;
    __syncthreads();
    if (t >= 32) x += sums[0];
    out[t] = x;
}
