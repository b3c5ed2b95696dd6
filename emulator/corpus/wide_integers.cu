// launch: grid 1 block 64 shared 0 in 256 out 256
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    unsigned __int128 a = ((unsigned __int128)in[t] << 96) | ((unsigned __int128)in[t + 64] << 40) | in[t + 128];
    unsigned __int128 b = (unsigned __int128)in[t + 1] << (t % 60) | 3;
    unsigned __int128 r = a + b * 7 - (a >> 17);
    r ^= a * b;
    bool less = a < b;
    out[4 * t] = (unsigned)r; out[4 * t + 1] = (unsigned)(r >> 32); out[4 * t + 2] = (unsigned)(r >> 64); out[4 * t + 3] = (unsigned)(r >> 96) ^ less;
}
