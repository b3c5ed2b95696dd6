// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ float a[8][9], b[8][9];
    unsigned x = threadIdx.x % 8, y = threadIdx.x / 8;
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        a[y][x] = (float)(int)(in[(y * 32 + k * 8 + x) % 256] & 15);
        b[y][x] = (float)(int)(in[(k * 64 + y * 8 + x) % 256] >> 28);
        __syncthreads();
        for (int i = 0; i < 8; ++i) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    out[threadIdx.x] = __float_as_uint(sum);
}
