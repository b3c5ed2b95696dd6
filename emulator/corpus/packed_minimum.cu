// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, a = in[t], b = in[t + 64], c = in[t + 128];
    unsigned r = __viaddmax_s16x2(a, b, c) ^ __viaddmin_u16x2(a, b, c);
    r += __vimax3_s16x2(a, b, c) ^ __vimin3_u16x2(a, b, c) ^ __vimax_s16x2_relu(a, b);
    r ^= __vimax_s32_relu((int)a, (int)b) + __vimin3_s32((int)a, (int)b, (int)c);
    out[t] = r;
}
