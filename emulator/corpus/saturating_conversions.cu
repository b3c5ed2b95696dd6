// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    float f = ((int)in[t] >> 8) * 0.37f;
    double d = (int)in[t] * 1048576.0;
    unsigned r = __float2int_rz(f) ^ __float2uint_rn(f) * 3 ^ __float2int_ru(f * 1e6f);
    r += (unsigned)__double2int_rn(d) ^ (unsigned)__double2ll_rd(d) ^ __double2uint_rz(d);
    r ^= (unsigned)(unsigned char)(int)f ^ (unsigned)(short)(int)f << 8;
    r += __float_as_uint(__int2float_rz(in[t])) ^ __float_as_uint(__ull2float_ru((unsigned long long)in[t] << 13));
    r ^= __float_as_uint(__saturatef(f * 0.01f)) ^ __float_as_uint(rintf(f)) ^ __float_as_uint(truncf(f)) ^ __float_as_uint(ceilf(f));
    r += (unsigned)__double_as_longlong(__ll2double_rn((long long)in[t] << 25));
    out[t] = r;
}
