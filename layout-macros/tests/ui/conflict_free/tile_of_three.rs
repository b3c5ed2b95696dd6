use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64, 2), element = f16, read = ldmatrix_x4)]
struct A;

fn main() {}
