// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    unsigned short a = in[t], b = in[t] >> 16;
    short c = in[t + 1], d = in[t + 2];
    unsigned char e = in[t + 3], f = in[t + 4];
    signed char g = in[t + 5];
    unsigned short r = a * b + (a >> (b & 15)) - (a / (b | 1)) + a % (b | 3);
    short s = c * d ^ (c >> (d & 7)) + c / (d | 1);
    unsigned char u = e * f + (e >> 3) - g;
    out[t] = r | (unsigned)(unsigned short)s << 16;
    out[t] ^= u * 0x010101u + (g < c ? 1 : 0) + ((unsigned)a * b >> 16) + ((int)c * d >> 16);
}
