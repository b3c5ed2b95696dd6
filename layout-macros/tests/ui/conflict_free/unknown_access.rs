use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, read = ldmatrix_x3)]
struct A;

fn main() {}
