// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, lane = t & 31, x = in[t], r = 0;
    if (lane < 20) {
        unsigned mask = __ballot_sync(0xfffff, x & 2);
        if (x & 2) r = __shfl_sync(mask, x, __ffs(mask) - 1) + __popc(mask);
        else r = mask;
        __syncwarp(0xfffff);
        r += __shfl_xor_sync(0xfffff, r, 1);
    } else {
        r = __activemask();
        for (unsigned i = 20; i < 32; ++i) r += __shfl_sync(0xfff00000, x, i);
    }
    __syncwarp();
    out[t] = r + __shfl_sync(0xffffffff, r, 31 - lane);
}
