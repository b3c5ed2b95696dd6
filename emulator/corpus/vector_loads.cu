// launch: grid 1 block 64 shared 0 in 512 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    uint4 a = ((const uint4 *)in)[t];
    float2 b = ((const float2 *)(in + 4))[t];
    ushort4 c = ((const ushort4 *)(in + 64))[t];
    uchar4 d = ((const uchar4 *)(in + 100))[t];
    char3 e = {(char)d.x, (char)d.y, (char)d.z};
    longlong2 f = ((const longlong2 *)in)[t];
    uint2 r = {a.x + a.y * 3 + (__float_as_uint(b.x) ^ __float_as_uint(b.y)), a.z ^ a.w};
    r.x += c.x * c.y - c.z + c.w + e.x * e.y + e.z + d.w;
    r.y ^= (unsigned)(f.x >> 5) + (unsigned)(f.y >> 40);
    ((uint2 *)out)[t] = r;
}
