// launch: grid 1 block 64 shared 0 in 256 out 64
// parameter: 07000300feffffff0000000000000440ffff00ff00000000
// compare: exact
struct Options { unsigned char kind; unsigned short step; int bias; double scale; unsigned long long mask; };
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n, Options options)
{
    unsigned t = threadIdx.x;
    unsigned x = in[(t * options.step) % 64] & (unsigned)options.mask;
    out[t] = (unsigned)(int)(x % 1000 * options.scale) + options.bias + options.kind;
}
