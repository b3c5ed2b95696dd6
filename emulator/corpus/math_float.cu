// launch: grid 1 block 64 shared 0 in 256 out 512
// compare: f32 4e-6
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    float x = (int)(in[t] & 0xffff) / 4096.0f - 6.0f, y = (in[t] >> 16) / 16384.0f + 0.1f;
    float r[8] = {sinf(x * 50.0f), cosf(x), powf(y, x), expf(x), logf(y), erff(x), tanhf(x), atan2f(x, y)};
    for (int i = 0; i < 8; ++i) out[8 * t + i] = __float_as_uint(r[i]);
}
