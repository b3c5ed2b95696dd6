// launch: grid 2 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    float cx = (t % 16) * 0.1875f - 2.0f, cy = (t / 16) * 0.25f - 1.0f, x = 0.0f, y = 0.0f;
    unsigned i = 0;
    while (i < 60 && x * x + y * y < 4.0f) {
        float z = __fadd_rn(__fsub_rn(__fmul_rn(x, x), __fmul_rn(y, y)), cx);
        y = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, x), y), cy);
        x = z;
        ++i;
    }
    out[t] = i;
}
