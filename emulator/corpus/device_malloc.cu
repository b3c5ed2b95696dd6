// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
extern "C" __device__ void *malloc(size_t);
extern "C" __device__ void free(void *);
struct Node { int value; Node *next; };
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned t = threadIdx.x;
    Node *head = nullptr;
    for (unsigned i = 0; i < 1 + t % 4; ++i) {
        Node *fresh = (Node *)malloc(sizeof(Node));
        fresh->value = in[t] % 1000 + i;
        fresh->next = head;
        head = fresh;
    }
    int sum = 0, weight = 1;
    while (head) {
        Node *old = head;
        sum += weight++ * old->value;
        head = old->next;
        free(old);
    }
    out[t] = sum;
}
