// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
template <int N> struct Poly { static __device__ int at(int x, const int *c) { return Poly<N - 1>::at(x, c + 1) * x + *c; } };
template <> struct Poly<0> { static __device__ int at(int, const int *c) { return *c; } };
template <typename T, int W> __device__ T sum(const T *data)
{
    T s = 0;
#pragma unroll
    for (int i = 0; i < W; ++i) s += data[i];
    return s;
}
__constant__ int coefficients[6] = {3, -1, 4, 1, -5, 9};
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    float f[5] = {1.0f, 2.0f, 0.5f, (float)t, (float)(in[t] & 7)};
    out[t] = Poly<5>::at(in[t] % 17, coefficients) + sum<int, 6>(coefficients) + (int)(sum<float, 5>(f) * 2.0f);
}
