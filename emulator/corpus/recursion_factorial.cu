// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ __noinline__ unsigned factorial(unsigned n) { return n < 2 ? 1 : n * factorial(n - 1); }
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    out[t] = factorial(t % 13);
}
