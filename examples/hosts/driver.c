/* Launches what `gemm --emit-host c` wrote with nothing but the CUDA driver: kernels of warpgroups with their tensor maps and clusters, and any other.
 *
 *     tilewright gemm --plan wgmma-f16-128x256x64+persistent --m 1024 --n 768 --k 512 --on none \
 *         --emit kernel.ptx --emit-host c kernel.h
 *     cc -O2 -DCONTRACT='"kernel.h"' -o driver examples/hosts/driver.c -ldl -lm
 *     ./driver kernel.ptx
 *
 * The contract is for one problem, and so is the program: C = A B in f16, row-major and packed, alpha 1 and beta 0. It checks rows of C,
 * all of them in small products, and prints the time of the launches. launch.c launches one kernel for every size.
 *
 * The few declarations of cuda.h that it takes are repeated here and the driver is opened at run time, so that no CUDA toolkit is
 * needed. */

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CONTRACT
#error "give the file that --emit-host c wrote: -DCONTRACT='\"kernel.h\"'"
#endif
#include CONTRACT

/* cuda.h */
typedef int CUresult; /* 0 is success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct {
    unsigned id;
    char pad[4];
    unsigned value[16];
} CUlaunchAttribute;
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;
enum { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, JIT_ERROR_LOG_BUFFER = 5, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum { CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

/* The driver's functions, under the names that the library exports: cuda.h makes cuMemAlloc mean cuMemAlloc_v2. */
#define DRIVER(FUNCTION)                                                                                        \
    FUNCTION(cuInit, (unsigned flags))                                                                          \
    FUNCTION(cuGetErrorString, (CUresult error, const char **text))                                             \
    FUNCTION(cuDeviceGet, (CUdevice *device, int ordinal))                                                      \
    FUNCTION(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                                   \
    FUNCTION(cuCtxSetCurrent, (CUcontext context))                                                              \
    FUNCTION(cuCtxSynchronize, (void))                                                                          \
    FUNCTION(cuModuleLoadDataEx, (CUmodule *module, const void *text, unsigned n, int *options, void **values)) \
    FUNCTION(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                    \
    FUNCTION(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                               \
    FUNCTION(cuMemAlloc_v2, (CUdeviceptr *pointer, size_t bytes))                                               \
    FUNCTION(cuMemcpyHtoD_v2, (CUdeviceptr target, const void *source, size_t bytes))                           \
    FUNCTION(cuMemcpyDtoH_v2, (void *target, CUdeviceptr source, size_t bytes))                                 \
    FUNCTION(cuTensorMapEncodeTiled,                                                                            \
             (void *map, unsigned type, uint32_t rank, void *address, const uint64_t *sizes,                    \
              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, unsigned interleave,         \
              unsigned swizzle, unsigned promotion, unsigned fill))                                             \
    FUNCTION(cuEventCreate, (CUevent *event, unsigned flags))                                                   \
    FUNCTION(cuEventRecord, (CUevent event, CUstream stream))                                                   \
    FUNCTION(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                             \
    FUNCTION(cuLaunchKernelEx,                                                                                  \
             (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))

#define DECLARE(name, parameters) static CUresult(*name) parameters;
DRIVER(DECLARE)

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "driver: %s: %s\n", what, why);
    exit(1);
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        fail("no GPU: not run", dlerror());
#define FIND(name, parameters)               \
    *(void **)&name = dlsym(library, #name); \
    if (!name)                               \
        fail("the CUDA driver is too old", #name " is missing");
    DRIVER(FIND)
}

static void check(const char *call, CUresult error)
{
    const char *text = NULL;
    if (error == 0)
        return;
    cuGetErrorString(error, &text);
    fail(call, text ? text : "unknown error");
}
#define CALL(name, ...) check(#name, name(__VA_ARGS__))

/* The text of a file, with a NUL at its end. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, "can't be opened");
    size_t size = 0, room = 1 << 20;
    char *text = NULL;
    do {
        room *= 2;
        text = realloc(text, room);
        if (!text)
            fail(path, "no memory for it");
        size += fread(text + size, 1, room - size, file);
    } while (size == room);
    fclose(file);
    text[size] = 0;
    return text;
}

/* The contract's callbacks. */

#ifdef TILEWRIGHT_TENSOR_MAPS
static int encode(void *context, const tilewright_tensor_map *map, void *place)
{
    (void)context;
    CALL(cuTensorMapEncodeTiled, place, map->data_type, map->rank, (void *)(uintptr_t)map->address, map->sizes,
         map->strides_bytes, map->box_sizes, map->element_strides, map->interleave, map->swizzle, map->l2_promotion,
         map->oob_fill);
    return 0;
}
#endif

static int launch(void *context, const tilewright_launch *one)
{
    CUfunction kernel = NULL;
    CALL(cuModuleGetFunction, &kernel, (CUmodule)context, one->kernel);
    if (one->shared_bytes > 0)
        CALL(cuFuncSetAttribute, kernel, MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)one->shared_bytes);
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config;
    memset(attributes, 0, sizeof attributes);
    memset(&config, 0, sizeof config);
    memcpy(config.grid, one->grid, sizeof config.grid);
    memcpy(config.block, one->block, sizeof config.block);
    config.shared_bytes = one->shared_bytes;
    config.attributes = attributes;
    /* A cluster that the text declares is not given again. */
    if (one->cluster[0] * one->cluster[1] * one->cluster[2] > 1 && !one->cluster_declared) {
        CUlaunchAttribute *cluster = &attributes[config.attribute_count++];
        cluster->id = CLUSTER_DIMENSION;
        memcpy(cluster->value, one->cluster, sizeof one->cluster);
    }
    if (one->beside_previous) {
        CUlaunchAttribute *beside = &attributes[config.attribute_count++];
        beside->id = PROGRAMMATIC_STREAM_SERIALIZATION;
        beside->value[0] = 1;
    }
    CALL(cuLaunchKernelEx, &config, kernel, one->params, NULL);
    return 0;
}

static void product(const tilewright_buffers *buffers, CUmodule module)
{
#ifdef TILEWRIGHT_TENSOR_MAPS
    int status = tilewright_launches(buffers, encode, launch, module);
#else
    int status = tilewright_launches(buffers, launch, module);
#endif
    if (status != 0)
        fail("the buffers", status == TILEWRIGHT_OVERLAP ? "two overlap" : "one is not aligned");
}

/* IEEE binary16 of -2, -1, 0, 1 or 2. */
static uint16_t small_half(int value)
{
    static const uint16_t magnitude[] = {0x0000, 0x3C00, 0x4000};
    return (uint16_t)(value < 0 ? 0x8000 | magnitude[-value] : magnitude[value]);
}

static double from_half(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude = exponent == 0    ? ldexp(fraction, -24)
                       : exponent == 31 ? (fraction ? NAN : INFINITY)
                                        : ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* Small integers, which products and sums keep exact. */
static uint16_t *matrix(size_t elements, uint32_t seed)
{
    uint16_t *values = malloc(elements * sizeof *values);
    if (!values)
        fail("matrix", "no memory for it");
    for (size_t i = 0; i < elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = small_half((int)((seed >> 16) % 5) - 2);
    }
    return values;
}

static CUdeviceptr upload(const void *values, size_t bytes)
{
    CUdeviceptr pointer = 0; /* allocations are aligned to 256 bytes */
    CALL(cuMemAlloc_v2, &pointer, bytes + 1);
    if (values)
        CALL(cuMemcpyHtoD_v2, pointer, values, bytes);
    return pointer;
}

enum { REPEATS = 20, CHECKED_ROWS = 64 };

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: driver kernel.ptx\n");
        return 2;
    }
    const size_t m = TILEWRIGHT_M, n = TILEWRIGHT_N, k = TILEWRIGHT_K;
    char *ptx = read_text(argv[1]);
    open_driver();
    CALL(cuInit, 0);
    CUdevice device = 0;
    CUcontext context = NULL;
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);

    /* The driver compiles the text; if it refuses, its log says why. */
    static char log[1 << 14];
    int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUmodule module = NULL;
    CUresult error = cuModuleLoadDataEx(&module, ptx, 2, options, values);
    if (error && log[0])
        fail(argv[1], log);
    check("cuModuleLoadDataEx", error);

    uint16_t *a = matrix(m * k, 1), *b = matrix(k * n, 2), *c = matrix(m * n, 3);
    tilewright_buffers buffers;
    memset(&buffers, 0, sizeof buffers);
    buffers.a = upload(a, m * k * sizeof *a);
    buffers.b = upload(b, k * n * sizeof *b);
    buffers.c = upload(c, m * n * sizeof *c);
#ifdef TILEWRIGHT_WORKSPACE
    buffers.workspace = upload(NULL, TILEWRIGHT_WORKSPACE_BYTES);
#endif
    product(&buffers, module);
    check("cuCtxSynchronize", cuCtxSynchronize()); /* an error of the kernel shows here */
    CALL(cuMemcpyDtoH_v2, c, buffers.c, m * n * sizeof *c);

    /* Sums of small integers are exact in f32, so that there is one rounding, to f16. */
    size_t step = m / CHECKED_ROWS > 0 ? m / CHECKED_ROWS : 1, checked = 0;
    double *sums = malloc(n * sizeof *sums);
    if (!sums)
        fail("matrix", "no memory for it");
    for (size_t row = 0; row < m; row += step, checked++) {
        memset(sums, 0, n * sizeof *sums);
        for (size_t l = 0; l < k; l++) {
            double factor = from_half(a[row * k + l]);
            for (size_t j = 0; factor != 0 && j < n; j++)
                sums[j] += factor * from_half(b[l * n + j]);
        }
        for (size_t j = 0; j < n; j++) {
            double got = from_half(c[row * n + j]);
            if (!(fabs(got - sums[j]) <= fabs(sums[j]) / 2048)) {
                fprintf(stderr, "driver: row %zu, column %zu of C is %g and not %g\n", row, j, got, sums[j]);
                return 1;
            }
        }
    }
    CUevent start = NULL, end = NULL;
    float milliseconds = 0;
    CALL(cuEventCreate, &start, 0);
    CALL(cuEventCreate, &end, 0);
    CALL(cuEventRecord, start, NULL);
    for (int i = 0; i < REPEATS; i++)
        product(&buffers, module);
    CALL(cuEventRecord, end, NULL);
    check("cuCtxSynchronize", cuCtxSynchronize());
    CALL(cuEventElapsedTime, &milliseconds, start, end);
    printf("%zux%zux%zu: %zu rows of C are right, %.4f ms\n", m, n, k, checked, milliseconds / REPEATS);
    return 0;
}
