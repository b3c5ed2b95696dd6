//! The approximate functions, an input a thread: of 32 bits at 2^18 inputs spread evenly over all bit patterns, of 16 bits at every input.
//!
//! The ISA leaves their last bits open. The emulator gives the nearest number; this says how often a GPU gives it and how far it is off otherwise.

use crate::Case;
use crate::numbers::Random;

/// Bit patterns by their first two bits.
const QUARTERS: &[&str] = &["0 to 2", "from 2", "-0 to -2", "from -2"];

/// Instructions and their types.
const FUNCTIONS: [(&str, &str); 22] = [
    ("rcp.approx", "f32"),
    ("rcp.approx.ftz", "f32"),
    ("sqrt.approx", "f32"),
    ("sqrt.approx.ftz", "f32"),
    ("rsqrt.approx", "f32"),
    ("rsqrt.approx.ftz", "f32"),
    ("sin.approx", "f32"),
    ("sin.approx.ftz", "f32"),
    ("cos.approx", "f32"),
    ("cos.approx.ftz", "f32"),
    ("lg2.approx", "f32"),
    ("lg2.approx.ftz", "f32"),
    ("ex2.approx", "f32"),
    ("ex2.approx.ftz", "f32"),
    ("tanh.approx", "f32"),
    ("tanh.approx", "f16"),
    ("tanh.approx", "bf16"),
    ("ex2.approx", "f16"),
    ("ex2.approx.ftz", "bf16"),
    ("rcp.approx.ftz", "f64"),
    ("rsqrt.approx.ftz", "f64"),
    ("rsqrt.approx", "f64"),
];

/// All functions: file, text and launches.
pub(crate) fn all() -> (String, String, Vec<Case>) {
    let module = "functions.ptx";
    let mut text = String::from(".version 8.4\n.target sm_90\n.address_size 64\n");
    let mut cases = Vec::new();
    for (opcode, ty) in FUNCTIONS {
        let kernel = format!("{opcode}.{ty}").replace('.', "_");
        let bits: u32 = match ty {
            "f64" => 64,
            "f32" => 32,
            _ => 16,
        };
        let bytes = bits / 8;
        text += &format!(
            ".visible .entry {kernel}(.param .u64 in, .param .u64 out)
{{
    .reg .b{bits} %x, %y;
    .reg .b32 %t, %n, %block;
    .reg .b64 %in, %out;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %block, %ctaid.x;
    mad.lo.u32 %t, %block, %n, %t;
    mad.wide.u32 %in, %t, {bytes}, %in;
    mad.wide.u32 %out, %t, {bytes}, %out;
    ld.global.b{bits} %x, [%in];
    {opcode}.{ty} %y, %x;
    st.global.b{bits} [%out], %y;
    ret;
}}
"
        );
        // Leading bits of the inputs that take every value; those below are random.
        let all = if bits == 16 { 16 } else { 18 };
        let mut random = Random(0x5eed_0f00_d00d_1234);
        let mut input = Vec::new();
        for i in 0..1u64 << all {
            let low = random.bits() & ((1 << (bits - all)) - 1);
            let x = i << (bits - all) | low;
            input.extend_from_slice(&x.to_le_bytes()[..bytes as usize]);
        }
        cases.push(Case {
            name: format!("{opcode}.{ty}"),
            module: module.to_owned(),
            kernel,
            grid: (1 << all) / 128,
            block: 128,
            out_bytes: input.len(),
            input,
            rows: Vec::new(),
            element: ty,
            families: QUARTERS,
            map: None,
        });
    }
    (module.to_owned(), text, cases)
}
