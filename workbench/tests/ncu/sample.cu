// Shared-memory accesses whose wavefronts are known: per warp 1 (row), 32 (column), 1 (padded column), 4 (128 bits), 16 (128 bits, stride 2).
#include <cstdio>
__global__ void conflicts(float *out, const float *in) {
  __shared__ float tile[32 * 32];
  __shared__ float padded[32 * 33];
  int x = threadIdx.x, y = threadIdx.y;
  float v = in[(blockIdx.x * 32 + y) * 32 + x];
  tile[y * 32 + x] = v;            // row: 1 wavefront
  padded[y * 33 + x] = v;          // row: 1
  __syncthreads();
  float a = tile[x * 32 + y];      // column: 32
  float b = padded[x * 33 + y];    // column of the padded tile: 1
  out[(blockIdx.x * 32 + y) * 32 + x] = a + b;
}
__global__ void wide(float4 *out, const float4 *in) {
  extern __shared__ float4 s[];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t]; // st.128, contiguous: 4
  __syncthreads();
  float4 a = s[(t * 2) & 255];     // ld.128, stride 2: 8
  float4 b = s[(t * 8) & 255];     // ld.128, stride 8: all rows of one bank group
  out[blockIdx.x * 256 + t] = make_float4(a.x + b.x, a.y, a.z, b.w);
}
int main() {
  float *in, *out; int n = 1 << 20;
  cudaMalloc(&in, n * 16); cudaMalloc(&out, n * 16); cudaMemset(in, 0, n * 16);
  conflicts<<<1024, dim3(32, 32)>>>(out, in);
  wide<<<1024, 256, 256 * 16>>>((float4 *)out, (const float4 *)in);
  cudaError_t e = cudaDeviceSynchronize(); printf("%s\n", cudaGetErrorString(e)); return e;
}
