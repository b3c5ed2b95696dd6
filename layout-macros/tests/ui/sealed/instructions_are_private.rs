use tilewright::codegen::ir::Address;
use tilewright::codegen::ir::Inst;
use tilewright::codegen::ir::Reg;
use tilewright::codegen::ir::Type;

fn main() {}
