// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, a = in[t], b = in[t + 64];
    unsigned r = __vadd4(a, b) ^ __vsub2(a, b) * 3;
    r += __vabsdiffu4(a, b) ^ __vabsdiffs2(a, b);
    r ^= __vmaxs4(a, b) + __vminu2(a, b);
    r += __vaddus4(a, b) ^ __vsubss2(a, b);
    r ^= __vcmpgtu4(a, b) & __vseteq4(a & 0x03030303, b & 0x03030303);
    r += __vavgu4(a, b) + __vhaddu2(a, b) + __vsadu4(a, b) + __vabs4(a) + __vneg2(b);
    r ^= __vabsss4(a) + __vsads4(a, b);
    out[t] = r;
}
