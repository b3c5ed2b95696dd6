// launch: grid 1 block 64 shared 0 in 256 out 256
// compare: exact
struct Triple { float x; double y; short z[3]; char c; };
__device__ __noinline__ Triple turn(Triple t, int by)
{
    Triple r;
    r.x = t.y + by; r.y = t.x * 0.5; r.z[0] = t.z[2]; r.z[1] = t.z[0]; r.z[2] = t.z[1] + by; r.c = t.c ^ 1;
    return r;
}
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    Triple a;
    a.x = (int)(in[t] & 1023); a.y = (int)(in[t] >> 20); a.z[0] = in[t]; a.z[1] = t; a.z[2] = -3; a.c = 'a' + t % 26;
    for (int i = 0; i < 3; ++i) a = turn(a, i);
    out[4 * t] = __float_as_uint(a.x);
    out[4 * t + 1] = (unsigned)(int)(a.y * 16);
    out[4 * t + 2] = (unsigned short)a.z[0] | (unsigned)(unsigned short)a.z[1] << 16;
    out[4 * t + 3] = (unsigned short)a.z[2] | (unsigned)(unsigned char)a.c << 16;
}
