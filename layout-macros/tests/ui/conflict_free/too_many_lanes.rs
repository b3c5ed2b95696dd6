use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, access = "ld.32 @ 64:2")]
struct A;

fn main() {}
