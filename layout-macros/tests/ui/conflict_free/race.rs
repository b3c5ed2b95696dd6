use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = f16, access = "st.32 @ (16,2):(2,0)")]
struct A;

fn main() {}
