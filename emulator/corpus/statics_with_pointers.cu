// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ int values[6] = {10, 20, 30, 40, 50, 60};
__device__ int *third = &values[2];
__device__ int *const ends[2] = {&values[0], &values[5]};
__constant__ float weights[3] = {0.5f, -1.25f, 3.0f};
__constant__ const float *last = &weights[2];
struct Packed { char c; int *p; short s; };
__device__ Packed packed = {'x', &values[4], -7};
__device__ const char *words[3] = {"alpha", "beta", "gamma"};
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    int sum = *third + *ends[t & 1] + packed.c + *packed.p + packed.s;
    sum += words[t % 3][t % 4] + (int)(weights[t % 3] * 8.0f) + (int)*last;
    out[t] = sum;
}
