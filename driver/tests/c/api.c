/* The API as a program sees it: memory of all kinds, copies, streams, events, graphs, attributes, errors. The argument is a file with `double`, `count` and `out_of_bounds`. */

#include "driver.h"

enum { N = 1000, BYTES = 4 * N };
static CUhandle context, module, twice, count, wild;
static uint32_t host[N];

/* out[i] = 2 * in[i] for i < n */
static void run_twice(CUdeviceptr out, CUdeviceptr in, unsigned n, CUhandle stream)
{
    void *arguments[] = {&out, &in, &n};
    CALL(cuLaunchKernel(twice, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
}

static void fill(uint32_t first)
{
    for (uint32_t i = 0; i < N; i++)
        host[i] = first + i;
}

static void devices(void)
{
    char name[64];
    int n, value, version;
    size_t bytes, available;
    CALL(cuDriverGetVersion(&version));
    CHECK(version >= 12000);
    CALL(cuDeviceGetCount(&n));
    CALL(cuDeviceGetName(name, sizeof name, 0));
    CHECK(n == 1 && strstr(name, "A100"));
    CALL(cuDeviceGetAttribute(&value, 16, 0));
    CHECK(value == 108);
    CALL(cuDeviceGetAttribute(&value, 75, 0));
    CHECK(value == 8);
    CALL(cuDeviceTotalMem(&bytes, 0));
    CHECK(bytes > (size_t)70 << 30);
    CALL(cuMemGetInfo(&available, &bytes));
    CHECK(available <= bytes);
    CHECK(cuDeviceGet(&n, 1) == 101 && cuDeviceGetAttribute(&value, 4000, 0) == 1);
}

static void functions(void)
{
    int value, blocks;
    size_t offset, size;
    CALL(cuFuncGetAttribute(&value, 0, twice));
    CHECK(value == 1024);
    CALL(cuFuncGetParamInfo(twice, 2, &offset, &size));
    CHECK(offset == 16 && size == 4 && cuFuncGetParamInfo(twice, 3, &offset, &size) == 1);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 1024, 0));
    CHECK(blocks == 1);
    CHECK(cuFuncSetAttribute(twice, 8, 200000) == 1);
    CALL(cuFuncSetAttribute(twice, 8, 100000));
    /* More dynamic shared memory than was asked for, a block that is too large, no such function. */
    CHECK(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 60000, NULL, NULL, NULL) == 1);
    CHECK(cuLaunchKernel(count, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL) == 1);
    CHECK(cuModuleGetFunction(&wild, module, "nothing") == 500);
}

static void memory(void)
{
    CUdeviceptr a, b, managed, mapped, pitched;
    size_t pitch;
    void *pinned;
    int kind;
    CALL(cuMemAlloc(&a, BYTES));
    CALL(cuMemAlloc(&b, BYTES));
    fill(5);
    CALL(cuMemcpyHtoD(a, host, BYTES));
    run_twice(b, a, N, NULL);
    CALL(cuMemcpyDtoD(a, b, BYTES));
    CALL(cuMemcpyDtoH(host, a, BYTES));
    CHECK(host[0] == 10 && host[N - 1] == 2 * (N + 4));
    CHECK(cuMemcpyHtoD(a + 4, host, BYTES) == 1);

    /* One address for host and device. */
    CALL(cuMemAllocManaged(&managed, BYTES, 1));
    CALL(cuMemHostAlloc(&pinned, BYTES, 0));
    CALL(cuMemHostGetDevicePointer(&mapped, pinned, 0));
    for (uint32_t i = 0; i < N; i++)
        ((uint32_t *)(uintptr_t)managed)[i] = i;
    run_twice(mapped, managed, N, NULL);
    CALL(cuCtxSynchronize());
    CHECK(((uint32_t *)pinned)[7] == 14);
    CALL(cuMemHostRegister(host, BYTES, 0));
    CHECK(cuMemHostRegister(host, BYTES, 0) == 712);
    run_twice((CUdeviceptr)(uintptr_t)host, managed, N, NULL);
    CALL(cuCtxSynchronize());
    CHECK(host[999] == 1998);
    CALL(cuMemHostUnregister(host));
    CALL(cuPointerGetAttribute(&kind, 2, a));
    CHECK(kind == 2);
    CALL(cuPointerGetAttribute(&kind, 2, mapped));
    CHECK(kind == 1 && cuPointerGetAttribute(&kind, 2, 12345) == 1);

    /* A column of 3 words of every row of 10. */
    CALL(cuMemAllocPitch(&pitched, &pitch, 40, 100, 4));
    fill(0);
    CUDA_MEMCPY2D there = {0, 0, 1, host, 0, NULL, 40, 0, 0, 2, NULL, pitched, NULL, pitch, 40, 100};
    CALL(cuMemcpy2D(&there));
    static uint32_t column[300];
    CUDA_MEMCPY2D back = {16, 1, 2, NULL, pitched, NULL, pitch, 0, 0, 1, column, 0, NULL, 12, 12, 99};
    CALL(cuMemcpy2D(&back));
    CHECK(column[0] == 14 && column[2] == 16 && column[3] == 24);

    CALL(cuMemFree(pitched));
    CALL(cuMemFree(managed));
    CALL(cuMemFreeHost(pinned));
    CALL(cuMemFree(a));
    CALL(cuMemFree(b));
    CHECK(cuMemFree(a) == 1);
}

static void called(void *data) { *(int *)data += 1; }

static void streams(void)
{
    CUhandle one, two, start, end;
    CUdeviceptr a, b, flag;
    int calls = 0;
    float milliseconds;
    CALL(cuStreamCreate(&one, 1));
    CALL(cuStreamCreate(&two, 1));
    CALL(cuEventCreate(&start, 0));
    CALL(cuEventCreate(&end, 0));
    CALL(cuMemAllocAsync(&a, BYTES, one));
    CALL(cuMemAllocAsync(&b, BYTES, one));
    CALL(cuMemAlloc(&flag, 4));
    CALL(cuMemsetD8(flag, 0, 4));
    CALL(cuEventRecord(start, one));
    /* The first stream waits for what the second one writes. */
    CALL(cuStreamWaitValue32(one, flag, 1, 1));
    run_twice(b, a, N, one);
    CALL(cuLaunchHostFunc(one, called, &calls));
    CALL(cuEventRecord(end, one));
    CHECK(cuStreamQuery(one) == 600 && cuEventQuery(end) == 600 && calls == 0);
    CALL(cuMemsetD32Async(a, 21, N, two));
    CALL(cuStreamWriteValue32(two, flag, 1, 0));
    CALL(cuStreamWaitEvent(two, end, 0));
    CALL(cuEventSynchronize(end));
    CALL(cuStreamSynchronize(one));
    CHECK(calls == 1);
    CALL(cuEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds >= 0);
    CALL(cuMemcpyDtoH(host, b, BYTES));
    CHECK(host[N - 1] == 42);
    CALL(cuMemFreeAsync(a, two));
    CALL(cuMemFreeAsync(b, two));
    CALL(cuStreamDestroy(one));
    CALL(cuStreamDestroy(two));
    CHECK(cuStreamSynchronize(one) == 400);
}

static uint32_t counter(void)
{
    CUdeviceptr place;
    size_t bytes;
    uint32_t value;
    CALL(cuModuleGetGlobal(&place, &bytes, module, "total"));
    CHECK(bytes == 4);
    CALL(cuMemcpyDtoH(&value, place, 4));
    return value;
}

static void graphs(void)
{
    CUhandle stream, other, event, graph, executable, nodes[4], set, kernel;
    CUdeviceptr a;
    size_t n = 4;
    uint32_t before = counter();
    CALL(cuMemAlloc(&a, BYTES));
    CALL(cuStreamCreate(&stream, 1));
    CALL(cuStreamCreate(&other, 1));
    CALL(cuEventCreate(&event, 2));
    /* A fork to another stream, and back. */
    CALL(cuStreamBeginCapture(stream, 0));
    CALL(cuMemsetD32Async(a, 4, N, stream));
    CALL(cuEventRecord(event, stream));
    CALL(cuStreamWaitEvent(other, event, 0));
    CALL(cuLaunchKernel(count, 2, 1, 1, 32, 1, 1, 0, other, NULL, NULL));
    CALL(cuEventRecord(event, other));
    CALL(cuStreamWaitEvent(stream, event, 0));
    run_twice(a, a, N, stream);
    CHECK(cuStreamSynchronize(stream) == 900);
    CALL(cuStreamEndCapture(stream, &graph));
    CALL(cuGraphGetNodes(graph, nodes, &n));
    CHECK(n == 3 && counter() == before);
    CALL(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CALL(cuGraphLaunch(executable, stream));
    CALL(cuGraphLaunch(executable, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemcpyDtoH(host, a, BYTES));
    CHECK(host[3] == 8 && counter() == before + 128);
    CALL(cuGraphExecDestroy(executable));
    CALL(cuGraphDestroy(graph));
    /* By hand. */
    CALL(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS to_nine = {a, 0, 9, 4, N, 1};
    CALL(cuGraphAddMemsetNode(&set, graph, NULL, 0, &to_nine, context));
    unsigned length = N;
    void *arguments[] = {&a, &a, &length};
    CUDA_KERNEL_NODE_PARAMS run = {twice, {8, 1, 1}, {128, 1, 1}, 0, arguments, NULL, NULL, NULL};
    CALL(cuGraphAddKernelNode(&kernel, graph, &set, 1, &run));
    CALL(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CALL(cuGraphLaunch(executable, NULL));
    CALL(cuMemcpyDtoH(host, a, BYTES));
    CHECK(host[N - 1] == 18);
}

static void errors(void)
{
    CUhandle none = NULL;
    CUdeviceptr nowhere = 64;
    const char *name = NULL;
    char log[256] = "";
    int options[] = {5, 6};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    void *arguments[] = {&nowhere};
    CALL(cuGetErrorName(700, &name));
    CHECK(!strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(cuModuleLoadDataEx(&none, ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { frob; }", 2, options, values) == 218);
    CHECK(strstr(log, "frob"));
    CHECK(cuModuleLoadDataEx(&none, ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }", 2, options, values) == 209);
    CHECK(strstr(log, "sm_90"));
    CHECK(cuModuleLoadDataEx(&none, "\177ELF\2\1\1", 2, options, values) == 209 && strstr(log, "machine code"));
    CHECK(cuMipmappedArrayCreate(&none, NULL, 1) == 801);
    /* What stops a GPU stops the context; the launch itself succeeds. */
    CALL(cuModuleGetFunction(&wild, module, "out_of_bounds"));
    CALL(cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuCtxSynchronize() == 700 && cuMemAlloc(&nowhere, 4) == 700);
}

int main(int argc, char **argv)
{
    CUhandle current;
    int n;
    CHECK(argc == 2);
    open_driver();
    CHECK(cuDeviceGetCount(&n) == 3);
    CALL(cuInit(0));
    CHECK(cuCtxSynchronize() == 201);
    CALL(cuDevicePrimaryCtxRetain(&context, 0));
    CALL(cuCtxSetCurrent(context));
    CALL(cuCtxGetCurrent(&current));
    CHECK(current == context);
    devices();
    CALL(cuModuleLoadDataEx(&module, read_text(argv[1]), 0, NULL, NULL));
    CALL(cuModuleGetFunction(&twice, module, "double"));
    CALL(cuModuleGetFunction(&count, module, "count"));
    functions();
    memory();
    streams();
    graphs();
    errors();
    puts("done");
    return 0;
}
