use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = 17, read = ldmatrix_x4)]
struct A;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = 12, read = ldmatrix_x4)]
struct B;

fn main() {}
