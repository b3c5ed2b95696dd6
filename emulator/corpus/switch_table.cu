// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, x = in[t], y = t;
    for (int round = 0; round < 6; ++round) {
        switch (x % 11) {
        case 0: y += x; break;
        case 1: y ^= x << 3; break;
        case 2: y = y * 33 + 7;
        case 3: y -= 5; break;
        case 4: y = __brev(y); break;
        case 5: y = ~y; break;
        case 6: y += y >> 5; break;
        case 7: y *= y | 1; break;
        case 8: if (y & 1) break; y += 1000; break;
        case 9: y = __popc(y) + x; break;
        default: y ^= 0x5a5a5a5a;
        }
        x = x * 1664525u + 1013904223u;
    }
    out[t] = y;
}
