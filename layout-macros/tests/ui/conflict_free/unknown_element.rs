use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = half, read = ldmatrix_x4)]
struct A;

fn main() {}
