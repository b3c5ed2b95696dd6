use tilewright::ConflictFree;

#[derive(ConflictFree)]
#[conflict_free = 3]
struct A;

fn main() {}
