// launch: grid 1 block 64 shared 0 in 256 out 1
// compare: exact
__device__ int lock = 0;
__device__ unsigned shared_total = 0;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence();
            shared_total = shared_total + (in[t] & 63);
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (t == 0) out[0] = *(volatile unsigned *)&shared_total;
}
