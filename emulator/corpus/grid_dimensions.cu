// launch: grid 3 block 64 shared 0 in 256 out 192
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned id = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x;
    out[id] = blockIdx.x | blockIdx.y << 4 | threadIdx.x << 8 | gridDim.x << 20 | blockDim.x << 24;
}
