// launch: grid 1 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    long long a = (long long)((unsigned long long)in[t] << 32 | in[t + 64]) >> (t & 15);
    long long b = ((long long)(int)in[t + 128] >> (t % 7)) | 1;
    unsigned long long ua = a, ub = b;
    unsigned long long r = a / b ^ a % b << 1 ^ ua / (ub >> 20 | 1) ^ ua % (ub | 5);
    r += __umul64hi(ua, ub) ^ __mul64hi(a, b) ^ (unsigned long long)__clzll(a) << 8 ^ __popcll(b) ^ __brevll(ua) ^ __ffsll(a);
    out[2 * t] = (unsigned)r;
    out[2 * t + 1] = (unsigned)(r >> 32);
}
