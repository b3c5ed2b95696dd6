/* Launches an emitted GEMM from C with nothing but the CUDA driver, and checks the result.
 *
 *     tilewright gemm --dtype f16 --plan mma-f16-128x128x32 --trans nn --split 1 \
 *         --m 1000 --n 528 --k 272 --emit kernel.ptx --json > gemm.json
 *     cc -O2 -o launch examples/launch.c -ldl -lm
 *     ./launch kernel.ptx 1000 528 272
 *
 * It serves that one kernel, for every m, n and k of which n and k are multiples of 8, with packed row-major matrices. The text
 * does not depend on the sizes. What does depend on the kernel is in the constants below, each with its key in the launch
 * contract, the value of "launch" in gemm.json: for another kernel take them from there.
 *
 * The few declarations of cuda.h that it takes are repeated here and the driver is opened at run time, so that no CUDA
 * toolkit is needed, neither to build this nor to run it. */

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contract. */
static const char ENTRY[] = "mma_f16_128x128x32_nn"; /* "kernel" */
enum {
    TILE_M = 128, TILE_N = 128, /* rows and columns of C that a block computes: the plan's tile */
    GROUP = 8,                  /* rows of tiles along the first axis of the grid */
    THREADS = 128,              /* "block": [128, 1, 1] */
    SHARED_BYTES = 65536,       /* "shared_bytes" */
    ALIGNED = 8                 /* leading dimensions are multiples of 16 bytes, the width of a copy */
};

/* cuda.h */
typedef int CUresult; /* 0 is success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
enum { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, JIT_ERROR_LOG_BUFFER = 5, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

/* The driver's functions, under the names that the library exports: cuda.h makes cuMemAlloc mean cuMemAlloc_v2. */
#define DRIVER(FUNCTION)                                                                                  \
    FUNCTION(cuInit, (unsigned flags))                                                                    \
    FUNCTION(cuGetErrorString, (CUresult error, const char **text))                                       \
    FUNCTION(cuDeviceGet, (CUdevice *device, int ordinal))                                                \
    FUNCTION(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                             \
    FUNCTION(cuCtxSetCurrent, (CUcontext context))                                                        \
    FUNCTION(cuCtxSynchronize, (void))                                                                    \
    FUNCTION(cuModuleLoadDataEx, (CUmodule *module, const void *text, unsigned n, int *options, void **values)) \
    FUNCTION(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))              \
    FUNCTION(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                         \
    FUNCTION(cuMemAlloc_v2, (CUdeviceptr *pointer, size_t bytes))                                         \
    FUNCTION(cuMemcpyHtoD_v2, (CUdeviceptr target, const void *source, size_t bytes))                     \
    FUNCTION(cuMemcpyDtoH_v2, (void *target, CUdeviceptr source, size_t bytes))                           \
    FUNCTION(cuLaunchKernel, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,    \
                              unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,  \
                              void **extra))

#define DECLARE(name, parameters) static CUresult(*name) parameters;
DRIVER(DECLARE)

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "launch: %s: %s\n", what, why);
    exit(1);
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        fail("there is no CUDA driver here", dlerror());
#define FIND(name, parameters)                   \
    *(void **)&name = dlsym(library, #name);     \
    if (!name)                                   \
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

/* A matrix of small integers, which products and sums keep exact. */
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

static CUdeviceptr upload(const uint16_t *values, size_t elements)
{
    CUdeviceptr pointer = 0; /* allocations are aligned to 256 bytes, and 16 are asked for */
    CALL(cuMemAlloc_v2, &pointer, elements * sizeof *values);
    CALL(cuMemcpyHtoD_v2, pointer, values, elements * sizeof *values);
    return pointer;
}

static uint32_t size(const char *text)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100000)
        fail(text, "is no size from 1 to 100000");
    return (uint32_t)value;
}

static uint32_t tiles(uint32_t elements, uint32_t tile) { return (elements + tile - 1) / tile; }

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: launch kernel.ptx M N K\n");
        return 2;
    }
    uint32_t m = size(argv[2]), n = size(argv[3]), k = size(argv[4]);
    if (n % ALIGNED || k % ALIGNED)
        fail("n and k", "this kernel copies 16 bytes at once: they must be multiples of 8");
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
    CUfunction kernel = NULL;
    CALL(cuModuleGetFunction, &kernel, module, ENTRY);
    /* Above 48 KiB this has to be asked for. */
    CALL(cuFuncSetAttribute, kernel, MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED_BYTES);

    size_t elements_a = (size_t)m * k, elements_b = (size_t)k * n, elements_c = (size_t)m * n;
    uint16_t *a = matrix(elements_a, 1), *b = matrix(elements_b, 2), *c = matrix(elements_c, 3);
    CUdeviceptr at_a = upload(a, elements_a), at_b = upload(b, elements_b), at_c = upload(c, elements_c);

    /* "params", in order: A, B, C, m, n, k, lda, ldb, ldc, alpha, beta. */
    uint32_t lda = k, ldb = n, ldc = n;
    float alpha = 1, beta = -1;
    void *params[] = {&at_a, &at_b, &at_c, &m, &n, &k, &lda, &ldb, &ldc, &alpha, &beta};
    /* "grid": up to 8 rows of tiles along x, columns of tiles along y, groups of rows along z. */
    uint32_t rows = tiles(m, TILE_M), group = rows < GROUP ? rows : GROUP;
    CALL(cuLaunchKernel, kernel, group, tiles(n, TILE_N), tiles(rows, group), THREADS, 1, 1, SHARED_BYTES, NULL,
         params, NULL);
    check("cuCtxSynchronize", cuCtxSynchronize()); /* an error of the kernel shows here */

    uint16_t *result = malloc(elements_c * sizeof *result);
    if (!result)
        fail("matrix", "no memory for it");
    CALL(cuMemcpyDtoH_v2, result, at_c, elements_c * sizeof *result);

    /* Sums of small integers are exact in f32, so that there is one rounding, to f16. */
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = -from_half(c[i * n + j]);
            for (size_t l = 0; l < k; l++)
                sum += from_half(a[i * k + l]) * from_half(b[l * n + j]);
            double got = from_half(result[i * n + j]);
            if (!(fabs(got - sum) <= fabs(sum) / 2048)) {
                fprintf(stderr, "launch: row %zu, column %zu of C is %g and not %g\n", i, j, got, sum);
                return 1;
            }
        }
    printf("%s: %ux%ux%u, all %zu elements of C are right\n", ENTRY, m, n, k, elements_c);
    return 0;
}
