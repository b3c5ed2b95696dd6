/* Launches kernels from C by their generated stubs and the CUDA driver alone: no CUDA toolkit is needed.
 *
 *     cc -O2 -o of_c host.c c/unit_*.c -ldl -lm && ./of_c */
#include "host.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult; /* cuda.h: 0 is success */
typedef unsigned long long CUdeviceptr;
typedef void *handle;
enum { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };

#define DRIVER(FUNCTION)                                                                                     \
    FUNCTION(cuInit, (unsigned flags))                                                                       \
    FUNCTION(cuGetErrorString, (CUresult error, const char **text))                                          \
    FUNCTION(cuDeviceGet, (int *device, int ordinal))                                                        \
    FUNCTION(cuDevicePrimaryCtxRetain, (handle * context, int device))                                       \
    FUNCTION(cuCtxSetCurrent, (handle context))                                                              \
    FUNCTION(cuCtxSynchronize, (void))                                                                       \
    FUNCTION(cuModuleLoadData, (handle * module, const void *text))                                          \
    FUNCTION(cuModuleGetFunction, (handle * function, handle module, const char *name))                      \
    FUNCTION(cuFuncSetAttribute, (handle function, int attribute, int value))                                \
    FUNCTION(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes))                                           \
    FUNCTION(cuMemFree_v2, (CUdeviceptr pointer))                                                            \
    FUNCTION(cuMemcpyHtoD_v2, (CUdeviceptr target, const void *source, size_t bytes))                        \
    FUNCTION(cuMemcpyDtoH_v2, (void *target, CUdeviceptr source, size_t bytes))                              \
    FUNCTION(cuLaunchKernel, (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,           \
                              unsigned by, unsigned bz, unsigned shared, handle stream, void **params,       \
                              void **extra))

#define DECLARE(name, parameters) static CUresult(*name) parameters;
DRIVER(DECLARE)

static void stop(const char *what, const char *why, int status)
{
    printf("%s: %s\n", what, why);
    exit(status);
}

static void check(const char *call, CUresult error)
{
    const char *text = NULL;
    if (error == 0)
        return;
    cuGetErrorString(error, &text);
    stop(call, text ? text : "unknown error", 1);
}
#define CALL(name, ...) check(#name, name(__VA_ARGS__))

static unsigned char *data;
static handle module;

static unsigned char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    unsigned char *bytes = NULL;
    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
        stop(path, "can't be opened", 1);
    bytes = malloc((size_t)size + 1);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        stop(path, "can't be read", 1);
    bytes[size] = 0;
    fclose(file);
    return bytes;
}

void host_module(const char *path)
{
    unsigned char *text = read_file(path);
    CALL(cuModuleLoadData, &module, text);
    free(text);
}

void host_upload(host_buffer *buffers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        host_buffer *b = &buffers[i];
        CUdeviceptr device = 0;
        unsigned char *first = malloc(b->bytes + 1);
        if (!first)
            stop(b->name, "no memory for it", 1);
        if (b->before == ~0ull)
            memset(first, 0xff, b->bytes);
        else
            memcpy(first, data + b->before, b->bytes);
        CALL(cuMemAlloc_v2, &device, b->bytes + 1);
        if (b->bytes)
            CALL(cuMemcpyHtoD_v2, device, first, b->bytes);
        b->device = device;
        free(first);
    }
}

/* The element of these bits. */
static double value(enum element element, const unsigned char *at)
{
    uint32_t bits = 0;
    float single;
    if (element == E4M3) {
        int exponent = *at >> 3 & 15, fraction = *at & 7;
        double magnitude = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
        return (*at & 127) == 127 ? NAN : *at & 128 ? -magnitude : magnitude;
    }
    if (element == F16) {
        uint16_t half;
        memcpy(&half, at, 2);
        int exponent = half >> 10 & 31, fraction = half & 1023;
        double magnitude = exponent == 0    ? ldexp(fraction, -24)
                           : exponent == 31 ? (fraction ? NAN : INFINITY)
                                            : ldexp(fraction + 1024, exponent - 25);
        return half & 0x8000 ? -magnitude : magnitude;
    }
    if (element == BF16) {
        uint16_t half;
        memcpy(&half, at, 2);
        bits = (uint32_t)half << 16;
    } else {
        memcpy(&bits, at, 4);
    }
    if (element == S32)
        return (int32_t)bits;
    memcpy(&single, &bits, 4);
    return single;
}

int host_compare(host_buffer *buffers, unsigned count, double tolerance)
{
    static const unsigned width[] = {4, 2, 2, 4, 1};
    int wrong = 0;
    CALL(cuCtxSynchronize);
    for (unsigned i = 0; i < count; i++) {
        host_buffer *b = &buffers[i];
        unsigned step = width[b->element];
        unsigned char *got = malloc(b->bytes + 1);
        if (!got)
            stop(b->name, "no memory for it", 1);
        if (b->bytes)
            CALL(cuMemcpyDtoH_v2, got, b->device, b->bytes);
        for (uint64_t at = 0; at < b->bytes && !wrong; at += step) {
            const unsigned char *right = data + b->after + at;
            double x = value(b->element, got + at), y = value(b->element, right);
            /* A number of e4m3 has neighbours at an eighth of it. */
            double near = b->element == E4M3 ? fabs(y) / 8 + 1.0 / 512 : tolerance * fmax(fabs(y), 1);
            int same = memcmp(got + at, right, step) == 0;
            if (!same && !(b->written && tolerance > 0 && fabs(x - y) <= near)) {
                printf("    %s[%llu] is %g and not %g\n", b->name, (unsigned long long)(at / step), x, y);
                wrong = 1;
            }
        }
        free(got);
        CALL(cuMemFree_v2, b->device);
    }
    return wrong;
}

int host_launch(void *context, const char *kernel, const unsigned grid[3], const unsigned block[3],
                unsigned shared_bytes, void **params)
{
    handle function = NULL;
    (void)context;
    CALL(cuModuleGetFunction, &function, module, kernel);
    if (shared_bytes > 0)
        CALL(cuFuncSetAttribute, function, MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes);
    CALL(cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, NULL,
         params, NULL);
    return 0;
}

int units(void); /* Runs them all: how many are wrong. */

int main(void)
{
    handle context = NULL;
    int device = 0, wrong;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        stop("C: no GPU: not run", "there is no driver libcuda.so.1", 77);
#define FIND(name, parameters)               \
    *(void **)&name = dlsym(library, #name); \
    if (!name)                               \
        stop("the CUDA driver is too old", #name " is missing", 1);
    DRIVER(FIND)
    if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0)
        stop("C: no GPU: not run", "the driver finds none", 77);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    data = read_file("data.bin");
    wrong = units();
    return wrong > 0;
}
