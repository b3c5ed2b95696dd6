use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 60), element = f16, write = cp_async_16)]
struct A;

fn main() {}
