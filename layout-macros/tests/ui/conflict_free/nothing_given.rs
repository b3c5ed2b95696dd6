use tilewright::ConflictFree;

#[derive(ConflictFree)]
struct A;

fn main() {}
