// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, x = in[t], r;
    asm("{.reg .pred p, q; mov.pred p, 1; setp.gt.u32 q, %1, %2; and.pred p, p, q; selp.u32 %0, %1, %2, p;}" : "=r"(r) : "r"(x), "r"(in[t + 1]));
    unsigned ballot;
    asm volatile("vote.sync.ballot.b32 %0, 1, 0xffffffff;" : "=r"(ballot));
    unsigned chosen;
    asm("selp.b32 %0, %1, 5, 0;" : "=r"(chosen) : "r"(x));
    out[t] = r + ballot + chosen;
}
