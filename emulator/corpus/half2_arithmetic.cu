// launch: grid 1 block 64 shared 0 in 256 out 128
// compare: exact
#include <cuda_fp16.h>
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    __half2 a = __floats2half2_rn((int)(in[t] & 255) - 128, (int)(in[t] >> 8 & 255) * 0.125f);
    __half2 b = __floats2half2_rn((int)(in[t] >> 16 & 31) * 0.5f + 1.0f, -3.0f);
    __half2 c = __hfma2(a, b, __float2half2_rn(0.25f));
    __half2 d = __hadd2(__hmul2(c, b), __hsub2(a, c));
    __half2 e = __hmin2(__hmax2(d, a), __habs2(b));
    __half f = __hdiv(__low2half(b), __high2half(b));
    __half g = hsqrt(__habs(__high2half(a)));
    bool less = __hlt(__low2half(a), __high2half(a));
    __half2 eq = __hgt2(a, b);
    __half sat = __hfma_sat(f, g, __float2half(0.5f));
    out[2 * t] = *(unsigned *)&d ^ *(unsigned *)&eq;
    out[2 * t + 1] = (*(unsigned *)&e & 0xffff) ^ (unsigned)__half_as_ushort(sat) << 16 ^ less;
}
