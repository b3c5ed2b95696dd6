/* What the units of the C host share: a buffer of a launch, and what happens to it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum element { F32, F16, BF16, S32, E4M3 };

typedef struct {
    const char *name;
    enum element element;
    int written;
    uint64_t before, after, bytes; /* where its bytes lie in data.bin; before is ~0 for bytes of 0xff */
    uint64_t device;
} host_buffer;

/* Opens a kernel's text. */
void host_module(const char *path);
/* Allocates the buffers of a launch and writes what they hold at first. */
void host_upload(host_buffer *buffers, unsigned count);
/* Compares them with what is right; 1 if some element is more than `tolerance` away. */
int host_compare(host_buffer *buffers, unsigned count, double tolerance);
/* Launches what a stub says, as its callback. */
int host_launch(void *context, const char *kernel, const unsigned grid[3], const unsigned block[3],
                unsigned shared_bytes, void **params);
