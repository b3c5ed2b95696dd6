// launch: grid 1 block 64 shared 0 in 256 out 768
// compare: f64 1e-13
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    double x = (int)(in[t] & 0xffff) / 4096.0 - 6.0, y = (in[t] >> 16) / 16384.0 + 0.1;
    double r[6] = {sin(x * 1000.0), pow(y, x), exp(x), log(y), erf(x), cbrt(x)};
    for (int i = 0; i < 6; ++i) ((double *)out)[6 * t + i] = r[i];
}
