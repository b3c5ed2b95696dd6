/* A driver of our own for the hosts of the natural kernels: its memory is the machine's, and a launch is held to the next one of the file `answers`, its name, grid,
 * block, shared memory and numbers; the buffers that it writes then hold what `answers` says of data.bin. With DRIVER_MODE=idle a launch does nothing, with none there
 * is no device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAD = 1, NO_DEVICE = 100 };

static FILE *answers, *data;
static char module_here;

static int is(const char *mode)
{
    const char *given = getenv("DRIVER_MODE");
    return given && strcmp(given, mode) == 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    answers = fopen("answers", "r");
    data = fopen("data.bin", "rb");
    return is("none") ? NO_DEVICE : answers && data ? 0 : BAD;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "not what the contract says";
    return 0;
}
int cuGetErrorName(int error, const char **text) { return cuGetErrorString(error, text); }

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)attribute, (void)device;
    *value = 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &module_here;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxSetCurrent(void *context) { return context ? 0 : BAD; }
int cuCtxGetCurrent(void **context)
{
    *context = &module_here;
    return 0;
}
int cuCtxSynchronize(void) { return 0; }
int cuStreamSynchronize(void *stream)
{
    (void)stream;
    return 0;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)stream, (void)event;
    return (int)flags;
}
int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = &module_here;
    return 0;
}
int cuEventRecord(void *event, void *stream)
{
    (void)event, (void)stream;
    return 0;
}
int cuEventSynchronize(void *event) { return event ? 0 : BAD; }
int cuEventDestroy_v2(void *event) { return event ? 0 : BAD; }
int cuModuleLoadData(void **module, const void *text)
{
    *module = &module_here;
    return strstr(text, ".visible .entry") ? 0 : BAD;
}
int cuModuleLoad(void **module, const char *path)
{
    FILE *file = fopen(path, "rb");
    *module = &module_here;
    return file ? fclose(file) : BAD;
}
int cuModuleUnload(void *module) { return module == &module_here ? 0 : BAD; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    *function = strdup(name);
    return *function ? 0 : BAD;
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function, (void)value;
    return attribute == 8 ? 0 : BAD;
}
int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    /* Memory of the driver is at multiples of 256. */
    *at = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return bytes > 0 && *at ? 0 : BAD;
}
int cuMemFree_v2(uint64_t at)
{
    free((void *)(uintptr_t)at);
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra)
{
    char name[128];
    unsigned want[8], got[7] = {gx, gy, gz, bx, by, bz, shared};
    (void)stream, (void)extra;
    if (is("idle"))
        return 0;
    if (fscanf(answers, "%127s", name) != 1 || strcmp(name, function) != 0)
        return BAD;
    for (int i = 0; i < 8; i++)
        if (fscanf(answers, "%u", &want[i]) != 1 || (i < 7 && want[i] != got[i]))
            return BAD;
    for (unsigned i = 0; i < want[7]; i++) {
        char kind;
        unsigned long long number, bytes = 0;
        if (fscanf(answers, " %c %llu", &kind, &number) != 2)
            return BAD;
        if (kind == 'n') {
            uint32_t value;
            memcpy(&value, params[i], sizeof value);
            if (value != number)
                return BAD;
            continue;
        }
        uint64_t at;
        memcpy(&at, params[i], sizeof at);
        if (fscanf(answers, "%llu", &bytes) != 1 || fseek(data, (long)number, SEEK_SET) != 0)
            return BAD;
        if (bytes && fread((void *)(uintptr_t)at, 1, bytes, data) != bytes)
            return BAD;
    }
    return 0;
}
