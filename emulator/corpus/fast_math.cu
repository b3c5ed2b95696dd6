// launch: grid 1 block 64 shared 0 in 256 out 512
// compare: f32 2e-4
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    float x = (int)(in[t] & 0xffff) / 16384.0f - 2.0f, y = (in[t] >> 16) / 16384.0f + 0.1f;
    float r[8] = {__sinf(x), __cosf(x), __expf(x), __logf(y + 2.0f), __powf(y, 1.5f), __fdividef(x, y), rsqrtf(y), __tanf(x * 0.5f)};
    for (int i = 0; i < 8; ++i) out[8 * t + i] = __float_as_uint(r[i]);
}
