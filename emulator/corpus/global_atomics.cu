// launch: grid 1 block 64 shared 0 in 256 out 16
// compare: exact
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[0], in[t]);
    atomicMin((int *)&out[1], (int)in[t]);
    atomicMax(&out[2], in[t]);
    atomicXor(&out[3], in[t] * 3);
    atomicOr(&out[4], 1u << (in[t] & 31));
    atomicAnd(&out[5], in[t] | 0xff);
    atomicInc(&out[6], 1000u);
    atomicDec(&out[7], 50u);
    atomicAdd((unsigned long long *)&out[8], (unsigned long long)in[t] << 8);
    atomicAdd((float *)&out[10], (float)(in[t] & 255));
    unsigned old = out[11], seen;
    do { seen = old; old = atomicCAS(&out[11], seen, seen + (in[t] & 3)); } while (old != seen);
    atomicAdd((double *)&out[12], (double)(in[t] & 1023) * 0.25);
}
