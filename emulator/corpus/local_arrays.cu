// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    unsigned short stack[40];
    unsigned x = in[t];
    int depth = 0;
    do { stack[depth++] = x % 10; x /= 10; } while (x);
    unsigned reversed = 0;
    for (int i = 0; i < depth; ++i) reversed = reversed * 10 + stack[(i + t) % depth];
    out[t] = reversed;
}
