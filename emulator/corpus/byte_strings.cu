// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ __noinline__ int length(const char *s) { int n = 0; while (s[n]) ++n; return n; }
__device__ __noinline__ int compare(const char *a, const char *b)
{
    while (*a && *a == *b) { ++a; ++b; }
    return *a - *b;
}
__device__ const char *names[4] = {"matrix", "matter", "mat", "zebra"};
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    const char *a = names[in[t] & 3], *b = names[in[t] >> 2 & 3];
    char copy[16];
    int count = length(a);
    for (int i = 0; i <= count; ++i) copy[i] = a[i];
    copy[0] -= 32;
    out[t] = length(copy) * 1000 + compare(a, b) + copy[0] + compare(copy, a);
}
