// launch: grid 1 block 64 shared 0 in 256 out 256
// compare: exact
// Additions and subtractions of 256 bits by the carry flag.
__device__ void add256(unsigned *r, const unsigned *a, const unsigned *b)
{
    asm("add.cc.u32 %0, %1, %2;" : "=r"(r[0]) : "r"(a[0]), "r"(b[0]));
    for (int i = 1; i < 7; ++i) asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r[i]) : "r"(a[i]), "r"(b[i]));
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(r[7]) : "r"(a[7]), "r"(b[7]));
}
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, r0, r1, r2, r3, s0, s1;
    asm volatile("sub.cc.u32 %0, %4, %5; subc.cc.u32 %1, %6, %7; subc.cc.u32 %2, %5, %6; subc.u32 %3, %7, %4;"
        : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3) : "r"(in[t]), "r"(in[t + 1]), "r"(in[t + 2]), "r"(in[t + 3]));
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;" : "=&r"(s0), "=&r"(s1) : "r"(in[t]), "r"(in[t + 4]), "r"(in[t + 5]), "r"(t));
    unsigned f0, f1;
    asm volatile("{.reg .u32 d; sub.cc.u32 d, %2, %3; addc.u32 %0, 0, 0; add.cc.u32 d, %2, %3; subc.u32 %1, 0, 0;}" : "=&r"(f0), "=&r"(f1) : "r"(in[t]), "r"(in[t + 1]));
    out[4 * t] = r0 ^ r1 ^ s0; out[4 * t + 1] = r2 ^ s1; out[4 * t + 2] = r3; out[4 * t + 3] = f0 | f1 << 8;
}
