// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
struct Flags { unsigned a : 3; int b : 7; unsigned c : 12; int d : 10; };
union View { unsigned word; Flags flags; unsigned char bytes[4]; float f; };
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    View v;
    v.word = in[t];
    v.flags.a += 3;
    v.flags.b = v.flags.b * 2 + v.flags.d;
    v.flags.c ^= v.bytes[1];
    v.bytes[t & 3] += 17;
    out[t] = v.word + v.flags.b;
}
