// launch: grid 1 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    float a = __fmul_rn((int)in[t] >> 7, 1.0009765625f), b = __fadd_rn(__fmul_rn((int)in[t + 64] >> 9, 0.33f), 0.01f);
    unsigned r = __float_as_uint(__fadd_ru(a, b)) ^ __float_as_uint(__fmul_rd(a, b)) ^ __float_as_uint(__fmaf_rz(a, b, a));
    r += __float_as_uint(__fdiv_rn(a, b)) ^ __float_as_uint(__fsqrt_rn(fabsf(a))) ^ __float_as_uint(__frcp_ru(b));
    double x = a, y = b;
    unsigned long long s = __double_as_longlong(__dadd_rd(x, y * 1e-9)) ^ __double_as_longlong(__dmul_ru(x, y)) ^ __double_as_longlong(__fma_rz(x, y, -x));
    s += __double_as_longlong(__ddiv_rn(x, y)) ^ __double_as_longlong(__dsqrt_rn(fabs(y)));
    out[2 * t] = r ^ (unsigned)s;
    out[2 * t + 1] = (unsigned)(s >> 32);
}
