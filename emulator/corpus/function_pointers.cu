// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int larger(int a, int b) { return a > b ? a : b; }
__device__ Operation table[4] = {plus, minus, times, larger};
__constant__ Operation fixed[2] = {times, minus};
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    int a = in[t], b = in[t + 64];
    int x = table[a & 3](a >> 4, b >> 8);
    int y = fixed[b & 1](x, t);
    Operation chosen = (t % 3 == 0) ? plus : (t % 3 == 1 ? larger : times);
    out[t] = chosen(x, y);
}
