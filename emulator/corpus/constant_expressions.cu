// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ unsigned weird = (1 << 4) + 3;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, r;
    asm("{.reg .u32 a; mov.u32 a, (3 + 4) * 2 - (1 << 3); mad.lo.u32 %0, a, 0x10 | 1, 7 > 3 ? 100 : 200; add.u32 %0, %0, ~0xfffffff0 & 0xff;}" : "=r"(r));
    unsigned far;
    asm("ld.global.u32 %0, [%1 + 4*2];" : "=r"(far) : "l"(in + t));
    out[t] = r + far + weird;
}
