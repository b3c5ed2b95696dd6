// launch: grid 1 block 64 shared 0 in 256 out 64
// compare: exact
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void run(unsigned *out, const unsigned *in, unsigned n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    unsigned t = block.thread_rank(), x = in[t];
    unsigned sum = x;
    for (int step = tile.size() / 2; step; step /= 2) sum += tile.shfl_xor(sum, step);
    unsigned r = sum;
    if (x & 4) {
        cg::coalesced_group active = cg::coalesced_threads();
        r += active.size() * 1000 + active.thread_rank();
        r ^= active.shfl(x, 0);
    }
    block.sync();
    out[t] = r;
}
