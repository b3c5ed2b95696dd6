// launch: grid 2 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __device__ int printf(const char *, ...);
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    int count = 0;
    if (threadIdx.x == 5) {
        count = printf("t=%u %5d|%-5d|%05d %x %#X %o %c %s %%\n", t, -(int)t, (int)t, (int)t, in[0] & 0xfff, 48879u, 8u, 'q', "text");
        printf("%f %.2f %8.3f %e %g %g %lld %llu %p\n", 1.5, 2.71828f, -3.14159, 12345.678, 0.0001, 1e20, -5000000000ll, 18446744073709551615ull, (void *)0x1234);
    }
    out[t] = count;
}
