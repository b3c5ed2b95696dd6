//! As strict as the assembler: one-line modules with the verdict of ptxas 13.0.88 for `sm_90`, which the emulator must share.
//!
//! `fixtures/ptxas_verdicts.txt` has a line for each: `takes` or `refuses` and the statement, which stands in a kernel with the registers of
//! [`HEAD`], each named after its type. They are written by hand or drawn from all instructions, types and register types.
//!
//! Of 8,677 that were drawn, these differ and are left out: the assembler takes `addc.u16`, `cvta.global.u32` and `rcp.rn.ftz.f64`, and refuses a `.f16x2`
//! register as the count of a shift, as the result of `clz` and in `redux`.

use ptx_emulator::Module;

const HEAD: &str = ".version 9.0
.target sm_90
.address_size 64
.shared .align 16 .b8 sm[64];
.global .align 16 .b8 gm[64];
.visible .entry k(.param .u64 out) {
.reg .pred p, q; .reg .b8 b8; .reg .u8 u8; .reg .s8 s8; .reg .b16 b16, c16; .reg .u16 u16; .reg .s16 s16; .reg .f16 f16;
.reg .f16x2 f16x2; .reg .b32 b32, c32, d32, e32, g32, h32; .reg .u32 u32; .reg .s32 s32; .reg .f32 f32, f1, f2, f3;
.reg .b64 b64, c64; .reg .u64 u64; .reg .s64 s64; .reg .f64 f64;
";

#[test]
fn verdicts_are_those_of_the_assembler() {
    let verdicts = include_str!("fixtures/ptxas_verdicts.txt");
    let mut wrong = Vec::new();
    for line in verdicts.lines() {
        let (verdict, statement) = line.split_once(' ').expect("a verdict and a statement");
        let module = Module::parse_strict(&format!("{HEAD}{statement}\nret;\n}}\n"));
        match (verdict, module) {
            ("takes", Err(e)) => wrong.push(format!("refused: {statement}: {e}")),
            ("refuses", Ok(_)) => wrong.push(format!("taken: {statement}")),
            _ => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        verdicts.lines().count(),
        wrong.join("\n")
    );
}
