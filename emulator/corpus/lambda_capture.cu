// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
template <typename F> __device__ __noinline__ int apply(F f, int times)
{
    int r = 0;
    for (int i = 0; i < times; ++i) r = f(r, i);
    return r;
}
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    int base = in[t] & 0xff, step = (in[t] >> 8 & 7) + 1;
    int grown = apply([=](int r, int i) { return r * step + base + i; }, 5);
    int mixed = apply([&](int r, int i) { base ^= r; return base - i; }, t % 6);
    out[t] = grown ^ mixed << 3 ^ base;
}
