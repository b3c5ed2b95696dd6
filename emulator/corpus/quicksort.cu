// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
__device__ void sort(int *data, int low, int high)
{
    while (low < high) {
        int pivot = data[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (data[i] < pivot) ++i;
            while (data[j] > pivot) --j;
            if (i <= j) { int x = data[i]; data[i++] = data[j]; data[j--] = x; }
        }
        if (j - low < high - i) { sort(data, low, j); low = i; }
        else { sort(data, i, high); high = j; }
    }
}
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    int data[24];
    for (int i = 0; i < 24; ++i) data[i] = (int)in[(t * 5 + i * 11) % 256] >> 4;
    sort(data, 0, 23);
    bool sorted = true;
    for (int i = 1; i < 24; ++i) sorted &= data[i - 1] <= data[i];
    out[t] = (data[12] ^ data[3]) * 2 + sorted;
}
