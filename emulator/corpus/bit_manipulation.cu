// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, x = in[t];
    unsigned r = __clz(x) + __ffs(x) * 32 + __popc(x) * 1024 + (__brev(x) >> 3);
    r ^= (x >> (t & 15) & ((1u << (t % 9 + 1)) - 1)) << 5;
    r += (x & ~(255u << (t & 15))) | (t << (t & 15));
    r ^= x << (t & 31) | x >> (31 - (t & 31));
    r += ((int)x >> 7) * ((x & 0x00f0f000) ? 3 : 5) + (x ^ t) + (~x & t) + (x | t ^ 0x55);
    out[t] = r;
}
