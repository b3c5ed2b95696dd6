// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, a = in[t], b = in[t + 64], c = in[t + 128], r, s, u, v, w, x;
    asm("vadd.s32.u32.s32.sat %0, %1.b1, %2.h1;" : "=r"(r) : "r"(a), "r"(b));
    asm("vabsdiff.u32.u32.u32.add %0, %1.h0, %2.h1, %3;" : "=r"(s) : "r"(a), "r"(b), "r"(c));
    asm("vmax.s32.s32.s32.min %0, %1, %2.b3, %3;" : "=r"(u) : "r"(a), "r"(b), "r"(c));
    asm("vset.s32.u32.gt.add %0, %1.b0, %2.b0, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c));
    asm("vshl.u32.u32.u32.clamp %0, %1.b2, %2.b0;" : "=r"(w) : "r"(a), "r"(t & 31));
    asm("vmad.s32.s32.s32.shr7 %0, %1.h0, %2.h1, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(c >> 4));
    out[t] = r ^ s + u ^ v * 3 + w ^ x;
}
