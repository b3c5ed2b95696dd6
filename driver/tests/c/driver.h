/* The few declarations of the CUDA driver API that the tests take, so that no toolkit is needed. The functions are found by cuGetProcAddress. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct handle *CUhandle; /* contexts, modules, functions, streams, events, graphs */

typedef struct {
    int id;
    int pad;
    union {
        char bytes[64];
        int cooperative;
        unsigned cluster[3];
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned grid[3], block[3], shared;
    CUhandle stream;
    CUlaunchAttribute *attributes;
    unsigned count;
} CUlaunchConfig;

typedef struct {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    CUdeviceptr from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    CUdeviceptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
} CUDA_MEMCPY2D;

typedef struct {
    CUhandle function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    CUhandle kernel, context;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUdeviceptr address;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

#define DRIVER(F)                                                                                                      \
    F(cuInit, (unsigned flags))                                                                                        \
    F(cuDriverGetVersion, (int *version))                                                                              \
    F(cuGetErrorName, (CUresult error, const char **name))                                                             \
    F(cuDeviceGet, (int *device, int ordinal))                                                                         \
    F(cuDeviceGetCount, (int *count))                                                                                  \
    F(cuDeviceGetName, (char *name, int room, int device))                                                             \
    F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                   \
    F(cuDeviceTotalMem, (size_t * bytes, int device))                                                                  \
    F(cuDevicePrimaryCtxRetain, (CUhandle * context, int device))                                                      \
    F(cuDevicePrimaryCtxRelease, (int device))                                                                         \
    F(cuCtxSetCurrent, (CUhandle context))                                                                             \
    F(cuCtxGetCurrent, (CUhandle * context))                                                                           \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleLoadDataEx, (CUhandle * module, const void *text, unsigned n, int *options, void **values))              \
    F(cuModuleUnload, (CUhandle module))                                                                               \
    F(cuModuleGetFunction, (CUhandle * function, CUhandle module, const char *name))                                   \
    F(cuModuleGetGlobal, (CUdeviceptr * address, size_t *bytes, CUhandle module, const char *name))                    \
    F(cuFuncGetAttribute, (int *value, int attribute, CUhandle function))                                              \
    F(cuFuncSetAttribute, (CUhandle function, int attribute, int value))                                               \
    F(cuFuncGetParamInfo, (CUhandle function, size_t index, size_t *offset, size_t *size))                             \
    F(cuMemGetInfo, (size_t * available, size_t *total))                                                               \
    F(cuMemAlloc, (CUdeviceptr * address, size_t bytes))                                                               \
    F(cuMemAllocPitch, (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned element))          \
    F(cuMemFree, (CUdeviceptr address))                                                                                \
    F(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags))                                        \
    F(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                                   \
    F(cuMemFreeHost, (void *memory))                                                                                   \
    F(cuMemHostRegister, (void *memory, size_t bytes, unsigned flags))                                                 \
    F(cuMemHostUnregister, (void *memory))                                                                             \
    F(cuMemHostGetDevicePointer, (CUdeviceptr * address, void *memory, unsigned flags))                                \
    F(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUhandle stream))                                         \
    F(cuMemFreeAsync, (CUdeviceptr address, CUhandle stream))                                                          \
    F(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr address))                                        \
    F(cuMemcpyHtoD, (CUdeviceptr target, const void *source, size_t bytes))                                            \
    F(cuMemcpyDtoH, (void *target, CUdeviceptr source, size_t bytes))                                                  \
    F(cuMemcpyDtoD, (CUdeviceptr target, CUdeviceptr source, size_t bytes))                                            \
    F(cuMemcpyAsync, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUhandle stream))                          \
    F(cuMemcpy2D, (const CUDA_MEMCPY2D *copy))                                                                         \
    F(cuMemsetD8, (CUdeviceptr target, unsigned char value, size_t count))                                             \
    F(cuMemsetD32Async, (CUdeviceptr target, unsigned value, size_t count, CUhandle stream))                           \
    F(cuStreamCreate, (CUhandle * stream, unsigned flags))                                                             \
    F(cuStreamDestroy, (CUhandle stream))                                                                              \
    F(cuStreamSynchronize, (CUhandle stream))                                                                          \
    F(cuStreamQuery, (CUhandle stream))                                                                                \
    F(cuStreamWaitEvent, (CUhandle stream, CUhandle event, unsigned flags))                                            \
    F(cuStreamWaitValue32, (CUhandle stream, CUdeviceptr address, uint32_t value, unsigned flags))                     \
    F(cuStreamWriteValue32, (CUhandle stream, CUdeviceptr address, uint32_t value, unsigned flags))                    \
    F(cuStreamBeginCapture, (CUhandle stream, int mode))                                                               \
    F(cuStreamEndCapture, (CUhandle stream, CUhandle *graph))                                                          \
    F(cuLaunchHostFunc, (CUhandle stream, void (*call)(void *), void *data))                                           \
    F(cuEventCreate, (CUhandle * event, unsigned flags))                                                               \
    F(cuEventDestroy, (CUhandle event))                                                                                \
    F(cuEventRecord, (CUhandle event, CUhandle stream))                                                                \
    F(cuEventQuery, (CUhandle event))                                                                                  \
    F(cuEventSynchronize, (CUhandle event))                                                                            \
    F(cuEventElapsedTime, (float *milliseconds, CUhandle start, CUhandle end))                                         \
    F(cuGraphCreate, (CUhandle * graph, unsigned flags))                                                               \
    F(cuGraphDestroy, (CUhandle graph))                                                                                \
    F(cuGraphGetNodes, (CUhandle graph, CUhandle *nodes, size_t *count))                                               \
    F(cuGraphAddKernelNode,                                                                                            \
      (CUhandle * node, CUhandle graph, const CUhandle *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *params))       \
    F(cuGraphAddMemsetNode, (CUhandle * node, CUhandle graph, const CUhandle *after, size_t n,                         \
                             const CUDA_MEMSET_NODE_PARAMS *params, CUhandle context))                                 \
    F(cuGraphInstantiateWithFlags, (CUhandle * executable, CUhandle graph, unsigned long long flags))                  \
    F(cuGraphLaunch, (CUhandle executable, CUhandle stream))                                                           \
    F(cuGraphExecDestroy, (CUhandle executable))                                                                       \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *count, CUhandle function, int threads, size_t shared))        \
    F(cuLaunchKernel, (CUhandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
                       unsigned bz, unsigned shared, CUhandle stream, void **arguments, void **extra))                 \
    F(cuLaunchKernelEx, (const CUlaunchConfig *config, CUhandle function, void **arguments, void **extra))             \
    F(cuMipmappedArrayCreate, (CUhandle * array, const void *description, unsigned levels))                            \
    F(cuTensorMapEncodeTiled, (void *map, int type, unsigned rank, CUdeviceptr address, const uint64_t *sizes,         \
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,    \
                               int swizzle, int promotion, int fill))

#define DECLARE(name, parameters) __attribute__((unused)) static CUresult(*name) parameters;
DRIVER(DECLARE)

static void open_driver(void)
{
    CUresult (*find)(const char *, void **, int, uint64_t, int *);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || !(*(void **)&find = dlsym(library, "cuGetProcAddress_v2"))) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        exit(3);
    }
#define FIND(name, parameters)                                       \
    if (find(#name, (void **)&name, 12080, 0, NULL) || !name) {      \
        fprintf(stderr, #name " is missing\n");                      \
        exit(3);                                                     \
    }
    DRIVER(FIND)
}

/* A call that must succeed. */
#define CALL(...)                                                                  \
    do {                                                                           \
        CUresult result = (__VA_ARGS__);                                           \
        if (result) {                                                              \
            fprintf(stderr, "line %d: %s = %d\n", __LINE__, #__VA_ARGS__, result); \
            exit(4);                                                               \
        }                                                                          \
    } while (0)

/* Something that must hold. */
#define CHECK(...)                                                     \
    do {                                                               \
        if (!(__VA_ARGS__)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #__VA_ARGS__); \
            exit(5);                                                   \
        }                                                              \
    } while (0)

/* The text of a file, with a NUL at its end. */
__attribute__((unused)) static char *read_text(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    CHECK(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}
