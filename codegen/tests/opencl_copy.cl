// y = x
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

// copy: work-groups of (128, 1, 1), 1024 bytes of local memory
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void copy(const uint n, const __global double *restrict x, __global double *restrict y)
{
    __local uchar smem[1024] __attribute__((aligned(16)));
    const __global uchar *const x_bytes = (const __global uchar *)x;
    __global uchar *const y_bytes = (__global uchar *)y;
    const uint smem_base = 0u;
    const uint group_x = (uint)get_group_id(0);
    const uint thread = (uint)get_local_id(0);
    const uint r5 = (n - group_x * 128u) - thread;
    const __global uchar *const x_at = (x_bytes + (ulong)(group_x << 10)) + (ulong)(thread << 3);
    const uint tile_offset = smem_base + (thread << 3);
    __global uchar *const y_at = (y_bytes + (ulong)(group_x << 10)) + (ulong)(thread << 3);
    double fd0 = 0.0;
    if ((int)r5 > 0) {
        fd0 = *(const __global double *)x_at;
    }
    *(__local double *)(smem + tile_offset) = fd0; // write tile
    barrier(CLK_LOCAL_MEM_FENCE);
    const double fd1 = *(const __local double *)(smem + tile_offset); // read tile
    if ((int)r5 > 0) {
        *(__global double *)y_at = fd1;
    }
}
