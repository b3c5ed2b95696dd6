/* A CUDA driver for one program: the functions that examples/launch.c asks for, on the CPU.
 *
 * It says what was launched, on the file that DRIVER_LOG names, and computes C <- alpha A B + beta C from the kernel's parameters
 * in place of the kernel. DRIVER_MODE=none has no device, DRIVER_MODE=wrong changes the last element of C. */

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
    fclose(log_file);
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

/* binary16 from and to whole numbers below 2048 in size. */
static double from_half(uint16_t half)
{
    double magnitude = half & 0x7FFF ? ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25) : 0;
    return half & 0x8000 ? -magnitude : magnitude;
}

static uint16_t to_half(double value)
{
    int exponent = 0;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    if (value == 0)
        return sign;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 1023));
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra)
{
    uint64_t pointers[3];
    uint32_t sizes[6];
    float scalars[2];
    for (int i = 0; i < 3; i++)
        memcpy(&pointers[i], params[i], 8);
    for (int i = 0; i < 6; i++)
        memcpy(&sizes[i], params[3 + i], 4);
    for (int i = 0; i < 2; i++)
        memcpy(&scalars[i], params[9 + i], 4);
    uint32_t m = sizes[0], n = sizes[1], k = sizes[2], lda = sizes[3], ldb = sizes[4], ldc = sizes[5];
    fprintf(log_file, "kernel %s grid %u %u %u block %u %u %u shared %u sizes %u %u %u %u %u %u scalars %g %g\n", entry,
            gx, gy, gz, bx, by, bz, shared, m, n, k, lda, ldb, ldc, scalars[0], scalars[1]);
    const uint16_t *a = (const uint16_t *)(uintptr_t)pointers[0], *b = (const uint16_t *)(uintptr_t)pointers[1];
    uint16_t *c = (uint16_t *)(uintptr_t)pointers[2];
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += from_half(a[i * lda + l]) * from_half(b[l * ldb + j]);
            c[i * ldc + j] = to_half(scalars[0] * sum + scalars[1] * from_half(c[i * ldc + j]));
        }
    if (mode("wrong"))
        c[(size_t)(m - 1) * ldc + n - 1] ^= 0x0040;
    return function != &entry[1] || shared > (unsigned)shared_limit || stream || extra;
}
