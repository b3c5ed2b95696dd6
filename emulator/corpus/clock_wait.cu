// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    long long start = clock64();
    while (clock64() - start < 300) {}
    unsigned a = clock(), b;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(b));
    out[t] = (clock64() - start >= 300) + ((int)(b - a) >= 0 ? 2 : 0);
}
