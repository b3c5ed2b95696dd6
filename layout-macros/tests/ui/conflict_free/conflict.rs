use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 32), element = f32, family = swizzle)]
#[conflict_free(write = "st.128 @ (32):(4)")]
#[conflict_free(read = "ld.128 @ (8,4):(32,4)", read = "ld.32 @ (32):(32)")]
struct A;

fn main() {}
