// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, lane = t & 31;
    unsigned mask = 0xffu << (lane & ~7u);
    unsigned x = in[t];
    unsigned sum = x;
    for (int step = 4; step; step >>= 1) sum += __shfl_xor_sync(mask, sum, step, 8);
    unsigned vote = __ballot_sync(mask, x & 1);
    unsigned any = __any_sync(mask, (x & 15) == 3), all = __all_sync(mask, x & 0x7fff);
    unsigned down = __shfl_down_sync(mask, x, 3, 8), up = __shfl_up_sync(mask, x, 2, 4), at = __shfl_sync(mask, x, 5, 8);
    out[t] = sum ^ vote ^ any << 1 ^ all << 2 ^ down * 3 ^ up * 5 ^ at * 7;
}
