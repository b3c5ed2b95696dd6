use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, write = ldmatrix_x4, read = cp_async_16)]
struct A;

fn main() {}
