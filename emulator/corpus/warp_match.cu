// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    unsigned key = in[t] % 5;
    unsigned peers = __match_any_sync(0xffffffff, key);
    int same;
    unsigned all = __match_all_sync(0xffffffff, t >> 5, &same);
    unsigned long long wide = (unsigned long long)key << 40;
    unsigned peers64 = __match_any_sync(0xffffffff, wide);
    out[t] = peers ^ (all & 0xf0f0) ^ same ^ (peers64 == peers ? 0 : 0xdead0000);
}
