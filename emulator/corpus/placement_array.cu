// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
struct Stack {
    int data[12]; int top;
    __device__ Stack() : top(0) {}
    __device__ void push(int x) { if (top < 12) data[top++] = x; }
    __device__ int pop() { return top ? data[--top] : -1; }
};
// Evaluates a small postfix program that each thread makes of its input.
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    Stack s;
    unsigned code = in[threadIdx.x];
    for (int i = 0; i < 10; ++i, code >>= 3) {
        switch (code & 7) {
        case 0: case 1: case 2: s.push((code >> 3 & 15) + 1); break;
        case 3: { int b = s.pop(), a = s.pop(); s.push(a + b); break; }
        case 4: { int b = s.pop(), a = s.pop(); s.push(a * b); break; }
        case 5: { int a = s.pop(); s.push(a); s.push(a); break; }
        case 6: s.push(-s.pop()); break;
        default: { int b = s.pop(); s.push(b ? 100 / b : 0); }
        }
    }
    int sum = 0;
    while (s.top) sum = sum * 31 + s.pop();
    out[threadIdx.x] = sum;
}
