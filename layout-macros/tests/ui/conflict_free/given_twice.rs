use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, read = ldmatrix_x4)]
#[conflict_free(tile = (32, 64))]
struct A;

fn main() {}
