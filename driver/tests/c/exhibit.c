/* Launches a kernel of the emulator's museum of bugs, as its file says:
 *
 *     exhibit FILE KERNEL GRID BLOCK CLUSTER [WIDTH HEIGHT STRIDE BOX_WIDTH BOX_HEIGHT SWIZZLE OF_INPUT]
 *
 * with two buffers of 16384 words and, if asked, a tensor map of halves. Exits with 10 if the context is in error after it, as it is after some bugs. */

#include "driver.h"

int main(int argc, char **argv)
{
    enum { WORDS = 16384 };
    static uint32_t words[WORDS];
    _Alignas(64) unsigned char map[128];
    int device;
    CUhandle context, module, function;
    CUdeviceptr out, in;
    CHECK(argc == 6 || argc == 13);
    open_driver();
    CALL(cuInit(0));
    CALL(cuDeviceGet(&device, 0));
    CALL(cuDevicePrimaryCtxRetain(&context, device));
    CALL(cuCtxSetCurrent(context));
    CALL(cuModuleLoadDataEx(&module, read_text(argv[1]), 0, NULL, NULL));
    CALL(cuModuleGetFunction(&function, module, argv[2]));
    CALL(cuMemAlloc(&out, sizeof words));
    CALL(cuMemAlloc(&in, sizeof words));
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    CALL(cuMemcpyHtoD(in, words, sizeof words));
    if (argc == 13) {
        uint64_t n[7];
        for (int i = 0; i < 7; i++)
            n[i] = strtoull(argv[6 + i], NULL, 10);
        uint64_t sizes[2] = {n[0], n[1]}, strides[1] = {n[2]};
        uint32_t box[2] = {(uint32_t)n[3], (uint32_t)n[4]}, steps[2] = {1, 1};
        CALL(cuTensorMapEncodeTiled(map, 6, 2, n[6] ? in : out, sizes, strides, box, steps, 0, n[5] ? 3 : 0, 0, 0));
    }
    void *arguments[] = {&out, &in, map};
    CUlaunchAttribute cluster = {4, 0, {.cluster = {(unsigned)atoi(argv[5]), 1, 1}}};
    CUlaunchConfig config = {{(unsigned)atoi(argv[3]), 1, 1}, {(unsigned)atoi(argv[4]), 1, 1}, 0, NULL, &cluster, 1};
    CALL(cuLaunchKernelEx(&config, function, arguments, NULL));
    return cuCtxSynchronize() ? 10 : 0;
}
