use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, access = "ldmatrix.x4 @ (16,2):(64)")]
struct A;

fn main() {}
