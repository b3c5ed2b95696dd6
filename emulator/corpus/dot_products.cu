// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    int a = in[t], b = in[t + 64];
    int r = __dp4a(a, b, (int)t);
    r ^= __dp4a((unsigned)a, (unsigned)b, t);
    r += __dp2a_lo(a, b, 5) - __dp2a_hi(a, b, 7);
    r ^= __sad(a, b, 9u) + __usad(a, b, 3u);
    r += __mul24(a, b) ^ __umul24(a, b) ^ __mulhi(a, b) ^ __umulhi(a, b);
    r ^= __funnelshift_l(a, b, t) + __funnelshift_rc(a, b, t) + __byte_perm(a, b, 0x7530 + t);
    r += __hadd(a, b) ^ __rhadd(a, b) ^ __uhadd(a, b) ^ __urhadd(a, b);
    out[t] = r;
}
