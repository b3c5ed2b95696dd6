// launch: grid 1 block 64 shared 0 in 256 out 128
// compare: exact
#include <cuda_bf16.h>
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    __nv_bfloat16 a = __float2bfloat16((int)(in[t] & 1023) * 0.25f), b = __int2bfloat16_rn((int)(in[t] >> 20) - 2048);
    __nv_bfloat162 p = __halves2bfloat162(a, b), q = __float2bfloat162_rn(1.5f);
    __nv_bfloat162 r = __hadd2(__hmul2(p, q), p), s = __hsub2(r, q);
    float f = __bfloat162float(__hadd(a, b)) + __low2float(r) * 2.0f + __high2float(s);
    out[2 * t] = __float_as_uint(f);
    out[2 * t + 1] = *(unsigned *)&r ^ (__hle(a, b) ? 1u : 0u);
}
