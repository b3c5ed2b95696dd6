/* A CUDA driver for programs that launch a kernel: the functions that examples/launch.c, launch.py and hosts/driver.c ask for, on the CPU.
 *
 * It says what was encoded and launched, on the file that DRIVER_LOG names, and computes C <- alpha A B + beta C of halves from the
 * kernel's parameters in place of the kernel: where a tensor map is one, from the array that was encoded. DRIVER_MODE=none has no
 * device, DRIVER_MODE=wrong changes the last element of C. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *log_file;
static char entry[256];
static int shared_limit;

static int mode(const char *name)
{
    const char *mode = getenv("DRIVER_MODE");
    return mode && strcmp(mode, name) == 0;
}

int cuInit(unsigned flags)
{
    log_file = fopen(getenv("DRIVER_LOG"), "w");
    if (!log_file || flags != 0)
        return 1;
    return mode("none") ? 100 : 0;
}

int cuGetErrorString(int error, const char **text)
{
    *text = error == 100 ? "no CUDA-capable device is detected" : "invalid argument";
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = 7;
    return ordinal != 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &log_file;
    return device != 7;
}

int cuCtxSetCurrent(void *context) { return context != &log_file; }

int cuCtxSynchronize(void)
{
    fflush(log_file);
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *text, unsigned options, int *names, void **values)
{
    fprintf(log_file, "text %zu\n", strlen(text));
    *module = entry;
    return !(options == 2 && names[0] == 5 && names[1] == 6 && values[0] && (uintptr_t)values[1] >= 1024);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    snprintf(entry, sizeof entry, "%s", name);
    *function = &entry[1];
    return module != entry;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    shared_limit = value;
    return function != &entry[1] || attribute != 8;
}

int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes)
{
    *pointer = (uintptr_t)malloc(bytes);
    return *pointer == 0;
}

int cuMemcpyHtoD_v2(unsigned long long target, const void *source, size_t bytes)
{
    memcpy((void *)(uintptr_t)target, source, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *target, unsigned long long source, size_t bytes)
{
    memcpy(target, (const void *)(uintptr_t)source, bytes);
    return 0;
}

/* binary16 from and to numbers that it has room for. */
static double from_half(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static uint16_t to_half(double value)
{
    int exponent = 0;
    double magnitude = fabs(value), fraction = frexp(magnitude, &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    if (magnitude < ldexp(1, -14))
        return (uint16_t)(sign | (int)rint(ldexp(magnitude, 24)));
    /* A fraction that rounds up to 2048 carries into the exponent. */
    return (uint16_t)(sign | (((exponent + 13) << 10) + (int)rint(ldexp(fraction, 11))));
}

/* What is encoded: where the array is and how far apart its rows are, in place of the driver's 128 bytes. */
struct map {
    uint64_t address, pitch_bytes, rest[14];
};

static void show(const char *name, const void *values, unsigned bytes, unsigned count)
{
    fprintf(log_file, " %s", name);
    for (unsigned i = 0; i < count; i++)
        fprintf(log_file, " %llu",
                bytes == 8 ? (unsigned long long)((const uint64_t *)values)[i]
                           : (unsigned long long)((const uint32_t *)values)[i]);
}

int cuTensorMapEncodeTiled(void *place, unsigned type, uint32_t rank, void *address, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, unsigned interleave,
                           unsigned swizzle, unsigned promotion, unsigned fill)
{
    struct map map = {(uintptr_t)address, strides[0], {0}};
    fprintf(log_file, "map type %u", type);
    show("sizes", sizes, 8, rank);
    show("strides", strides, 8, rank - 1);
    show("box", box, 4, rank);
    show("steps", steps, 4, rank);
    fprintf(log_file, " interleave %u swizzle %u promotion %u fill %u\n", interleave, swizzle, promotion, fill);
    if ((uintptr_t)place % 64 || map.address % 16)
        return 1;
    memcpy(place, &map, sizeof map);
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    *event = &log_file;
    return flags != 0;
}

int cuEventRecord(void *event, void *stream) { return event != &log_file || stream; }

int cuEventElapsedTime(float *milliseconds, void *start, void *end)
{
    *milliseconds = 1;
    return start != &log_file || end != &log_file;
}

/* The product of a kernel with these parameters. Where `mapped`, A and B are tensor maps behind the others. */
static void product(void **params, int mapped)
{
    struct map maps[2] = {{0}};
    uint64_t pointers[3];
    uint32_t sizes[6];
    float scalars[2];
    if (mapped) {
        memcpy(maps, params[9], sizeof *maps);
        memcpy(&maps[1], params[10], sizeof *maps);
    }
    for (int i = 0; i < 3; i++)
        if (mapped && i < 2)
            pointers[i] = maps[i].address;
        else
            memcpy(&pointers[i], params[mapped ? 0 : i], 8);
    void **rest = params + (mapped ? 1 : 3);
    for (int i = 0; i < 6; i++)
        memcpy(&sizes[i], rest[i], 4);
    for (int i = 0; i < 2; i++)
        memcpy(&scalars[i], rest[6 + i], 4);
    uint32_t m = sizes[0], n = sizes[1], k = sizes[2], lda = sizes[3], ldb = sizes[4], ldc = sizes[5];
    if (mapped) {
        lda = (uint32_t)(maps[0].pitch_bytes / 2);
        ldb = (uint32_t)(maps[1].pitch_bytes / 2);
    }
    fprintf(log_file, " sizes %u %u %u %u %u %u scalars %g %g\n", m, n, k, lda, ldb, ldc, scalars[0], scalars[1]);
    const uint16_t *a = (const uint16_t *)(uintptr_t)pointers[0], *b = (const uint16_t *)(uintptr_t)pointers[1];
    uint16_t *c = (uint16_t *)(uintptr_t)pointers[2];
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += from_half(a[i * lda + l]) * from_half(b[l * ldb + j]);
            double old = scalars[1] != 0 ? from_half(c[i * ldc + j]) : 0;
            c[i * ldc + j] = to_half(scalars[0] * sum + scalars[1] * old);
        }
    if (mode("wrong"))
        c[(size_t)(m - 1) * ldc + n - 1] ^= 0x0040;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra)
{
    fprintf(log_file, "kernel %s grid %u %u %u block %u %u %u shared %u", entry, gx, gy, gz, bx, by, bz, shared);
    product(params, 0);
    return function != &entry[1] || shared > (unsigned)shared_limit || stream || extra;
}

struct attribute {
    unsigned id, pad, value[16];
};

struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct attribute *attributes;
    unsigned count;
};

int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra)
{
    fprintf(log_file, "kernel %s", entry);
    show("grid", config->grid, 4, 3);
    show("block", config->block, 4, 3);
    fprintf(log_file, " shared %u", config->shared);
    for (unsigned i = 0; i < config->count; i++) {
        fprintf(log_file, " attribute %u", config->attributes[i].id);
        show("value", config->attributes[i].value, 4, 3);
    }
    product(params, strncmp(entry, "wgmma", 5) == 0);
    return function != &entry[1] || config->shared > (unsigned)shared_limit || config->stream || extra;
}
