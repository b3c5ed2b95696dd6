use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, write = cp_async_16(threads = 100))]
struct A;

fn main() {}
