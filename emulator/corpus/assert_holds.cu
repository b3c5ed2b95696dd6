// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
#include <cuda/std/cassert>
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    assert(n == 64);
    assert(t < n && "a thread outside");
    out[t] = in[t] / (t + 1);
}
