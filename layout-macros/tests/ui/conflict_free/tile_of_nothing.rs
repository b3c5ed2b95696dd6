use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (0, 32), element = f16, access = "ld.32 @ 32:2")]
struct A;

#[derive(ConflictFree)]
#[conflict_free(tile = (8, 99999), element = f16, read = ldmatrix_x4)]
struct B;

fn main() {}
