use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, access = "ld.128 @ (32):(3)")]
struct A;

fn main() {}
