// launch: grid 1 block 64 shared 0 in 256 out 128
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x, r, s;
    asm("{.reg .v4 .b32 v; .reg .v2 .f32 w; ld.global.v4.b32 v, [%2]; add.u32 v.x, v.x, v.w; xor.b32 %0, v.x, v.y;"
        " mov.f32 w.x, 0f40000000; mov.f32 w.y, w.x; add.f32 w.x, w.x, w.y; mov.b32 %1, w.x;}" : "=r"(r), "=r"(s) : "l"(in + 4 * (t % 32)));
    out[2 * t] = r;
    out[2 * t + 1] = s;
}
