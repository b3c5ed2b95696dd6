// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ __noinline__ unsigned collatz(unsigned x) { unsigned n = 0; while (x != 1 && n < 40) { x = x & 1 ? 3 * x + 1 : x / 2; ++n; } return n; }
__device__ __noinline__ unsigned early(unsigned x, unsigned k)
{
    if (x & 1) return k + 1;
    if (x & 2) return collatz(k + 1);
    for (unsigned i = 0; i < k % 5; ++i) { if (i == 3) return 77; x += collatz(x + i & 31 | 1); }
    return x;
}
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, r = 0;
    if (t % 3) r = early(in[t] & 0xff, t);
    r += __shfl_xor_sync(0xffffffff, r, 1);
    out[t] = r;
}
