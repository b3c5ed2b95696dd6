use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = bf16, family = swizzle)]
#[conflict_free(write = "cp.async.16 @ (4,8):(8,64)", read = "ldmatrix.x4 @ (16,2):(64,8)")]
struct A;

fn main() {}
