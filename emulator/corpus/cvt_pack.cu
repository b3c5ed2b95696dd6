// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, r, s;
    int a = (int)in[t] >> 20, b = (int)in[t + 1] >> 22;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(t));
    asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(s) : "r"(a * 64), "r"(b * 7));
    out[t] = r ^ s;
}
