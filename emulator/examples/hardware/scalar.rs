//! Random straight-line programs of scalar instructions: each instruction writes a new register, and all are stored at the end, so that a difference
//! names the instruction.
//!
//! An instruction is a pattern such as `add.{u32,s32} r r r`: braces are choices, the words behind it are operands, the first of them the destination.
//! Left out are approximations, whose last bits the ISA leaves open, and results that it leaves undefined.

use crate::Case;
use crate::numbers::Random;

/// Instructions of a program.
const LENGTH: usize = 24;
/// Sets of inputs: each is 6 numbers of 64 bits for each of 32 threads.
const SETS: u64 = 64;

/// Operands: `h` 16 bits, `r` 32 bits, `w` the same and never a constant, `d` 64 bits, `k` f16, `b` bf16, `f` f32, `g` f64, `p` a predicate, `#` a constant of 8 bits, `1` a divisor that is not
/// zero, `2` the same of 16 bits, `3` of 64 bits, `4#` a constant below 16, `4` and `5` a register below 16 and 32: fields of bits stay within the number, since
/// beyond it ptxas computes otherwise than the ISA says.
const PATTERNS: &[&str] = &[
    "{add,sub,mul.lo,mul.hi,min,max}.{u16,s16} h h h",
    "{add,sub,mul.lo,mul.hi,min,max}.{u32,s32} r r r",
    "{add,sub,mul.lo,mul.hi,min,max}.{u64,s64} d d d",
    "{add,sub}.sat.s32 r r r",
    "{add,min,max}.{u16x2,s16x2} r w w",
    "{min,max}.relu.{s16x2,s32} r w w",
    "mul.wide.{u16,s16} r h h",
    "mul.wide.{u32,s32} d r r",
    "mul24.{lo,hi}.{u32,s32} r r r",
    "mad.lo.{u16,s16} h h h h",
    "mad.{lo,hi}.{u32,s32} r r r r",
    "mad.{lo,hi}.{u64,s64} d d d d",
    "mad.wide.{u16,s16} r h h r",
    "mad.wide.{u32,s32} d r r d",
    "mad.hi.sat.s32 r r r r",
    "mad24.{lo,hi}.{u32,s32} r r r r",
    "sad.{u16,s16} h h h h",
    "sad.{u32,s32} r r r r",
    "sad.{u64,s64} d d d d",
    "{div,rem}.{u16,s16} h h 2",
    "{div,rem}.{u32,s32} r r 1",
    "{div,rem}.{u64,s64} d d 3",
    "{abs,neg}.s16 h h",
    "{abs,neg}.s32 r r",
    "{abs,neg}.s64 d d",
    "{popc,clz}.b32 r r",
    "{popc,clz}.b64 r d",
    "bfind{,.shiftamt}.{u32,s32} w w",
    "bfind{,.shiftamt}.{u64,s64} w d",
    "brev.b32 r r",
    "brev.b64 d d",
    "bfe.{u32,s32} r r 4 4",
    "bfe.{u32,s32} r r 4# 4#",
    "bfe.{u64,s64} d d 5 5",
    "bfe.{u64,s64} d d 4# 4#",
    "bfi.b32 r r r 4 4",
    "bfi.b32 r r r 4# 4#",
    "bfi.b64 d d d 5 5",
    "bfi.b64 d d d 4# 4#",
    "bmsk.{clamp,wrap}.b32 r r r",
    "szext.{clamp,wrap}.{u32,s32} r r r",
    "{and,or,xor}.b16 h h h",
    "{and,or,xor}.b32 r r r",
    "{and,or,xor}.b64 d d d",
    "{not,cnot}.b16 h h",
    "{not,cnot}.b32 r r",
    "{not,cnot}.b64 d d",
    "lop3.b32 r r r r #",
    "{shl.b16,shr.b16,shr.u16,shr.s16} h h w",
    "{shl.b32,shr.b32,shr.u32,shr.s32} r r w",
    "{shl.b64,shr.b64,shr.u64,shr.s64} d d w",
    "{shl.b32,shr.u32,shr.s32} r r #",
    "{shl.b64,shr.u64,shr.s64} d d #",
    "shf.{l,r}.{clamp,wrap}.b32 r r r r",
    "prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} r r r r",
    "dp4a.{u32,s32}.{u32,s32} r r r r",
    "dp2a.{lo,hi}.{u32,s32}.{u32,s32} r r r r",
    "add.cc.{u32,s32} r r r;addc.cc.u32 r r r;addc.u32 r r r",
    "sub.cc.{u32,s32} r r r;subc.cc.u32 r r r;subc.u32 r r r",
    "add.cc.u64 d d d;addc.u64 d d d",
    "sub.cc.u64 d d d;subc.u64 d d d",
    "mad.{lo,hi}.cc.u32 r r r r;madc.{lo,hi}.cc.u32 r r r r;madc.hi.{u32,s32} r r r r",
    "sub.cc.u32 r r r;addc.u32 r r r",
    "slct.{u32,s32,b32}.s32 r r r r",
    "slct.{u64,b64}.s32 d d d r",
    "slct{,.ftz}.{f32,b32}.f32 f f f f",
    "selp.b16 h h h p",
    "selp.{b32,u32,s32} r r r p",
    "selp.b64 d d d p",
    "selp.f32 f f f p",
    "set.{eq,ne,lt,le,gt,ge}.{u32,s32}.{u32,s32} r r r",
    "set.{eq,ne,lt,le,gt,ge}.f32.{u32,s32} f r r",
    "set.{eq,lt,ge,equ,ltu,num,nan}{,.ftz}.{u32,s32}.f32 r f f",
    "set.{eq,lt,ge,equ,gtu,num,nan}.{u32,s32}.f64 r g g",
    "set.{eq,lt,ge}.{and,or,xor}.u32.s32 r r r p",
    "setp.{eq,ne,lt,le,gt,ge}.{u16,s16} p h h",
    "setp.{eq,ne,lt,le,gt,ge}.{u32,s32} p r r",
    "setp.{lo,ls,hi,hs}.u32 p r r",
    "setp.{eq,ne,lt,le,gt,ge}.{u64,s64} p d d",
    "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f32 p f f",
    "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f64 p g g",
    "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f16 p k k",
    "setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.bf16 p b b",
    "setp.{eq,lt,ge}.{and,or,xor}.s32 p r r p",
    "{add,sub,mul}{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f",
    "{add,sub,mul}{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f",
    "fma{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f f",
    "fma{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f f",
    "div{.rn,.rz,.rm,.rp}{,.ftz}.f32 f f f",
    "{rcp,sqrt}{.rn,.rz,.rm,.rp}{,.ftz}.f32 f f",
    "{abs,neg}{,.ftz}.f32 f f",
    "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32 f f f",
    "copysign.f32 f f f",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.f32 p f",
    "{add,sub,mul}{.rn,.rz,.rm,.rp}.f64 g g g",
    "fma{.rn,.rz,.rm,.rp}.f64 g g g g",
    "div{.rn,.rz,.rm,.rp}.f64 g g g",
    "{rcp,sqrt}{.rn,.rz,.rm,.rp}.f64 g g",
    "{abs,neg}.f64 g g",
    "{min,max}.f64 g g g",
    "copysign.f64 g g g",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.f64 p g",
    "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16 k k k",
    "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16x2 r w w",
    "{add,sub,mul}{,.rn}.bf16 b b b",
    "{add,sub,mul}{,.rn}.bf16x2 r w w",
    "fma.rn{,.ftz}{,.sat,.relu}.f16 k k k k",
    "fma.rn{,.ftz}{,.sat,.relu}.f16x2 r w w w",
    "fma.rn{,.relu}.bf16 b b b b",
    "fma.rn{,.relu}.bf16x2 r w w w",
    "{abs,neg}{,.ftz}.f16 k k",
    "{abs,neg}{,.ftz}.f16x2 r w",
    "{abs,neg}.bf16 b b",
    "{abs,neg}.bf16x2 r w",
    "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16 k k k",
    "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16x2 r w w",
    "{min,max}{,.NaN}{,.xorsign.abs}.bf16 b b b",
    "{min,max}{,.NaN}{,.xorsign.abs}.bf16x2 r w w",
    "cvt.{u8,s8}.{u32,s32} r r",
    "cvt.sat.{u8,s8}.{u32,s32} r r",
    "cvt{,.sat}.{u16,s16}.{u32,s32} h r",
    "cvt{,.sat}.{u16,s16}.{u64,s64} h d",
    "cvt.{u32,s32}.{u16,s16} r h",
    "cvt.sat.u32.s16 r h",
    "cvt{,.sat}.{u32,s32}.{u64,s64} r d",
    "cvt.{u64,s64}.{u16,s16} d h",
    "cvt.sat.u64.s16 d h",
    "cvt.{u64,s64}.{u32,s32} d r",
    "cvt.sat.u64.s32 d r",
    "cvt.{u64,s64}.{u8,s8} d r",
    "cvt{.rn,.rz,.rm,.rp}{,.sat}.f32.{u8,s8} f r",
    "cvt{.rn,.rz,.rm,.rp}{,.sat}.f32.{u16,s16} f h",
    "cvt{.rn,.rz,.rm,.rp}{,.sat}.f32.{u32,s32} f r",
    "cvt{.rn,.rz,.rm,.rp}{,.sat}.f32.{u64,s64} f d",
    "cvt{.rn,.rz,.rm,.rp}.f64.{u16,s16} g h",
    "cvt{.rn,.rz,.rm,.rp}.f64.{u32,s32} g r",
    "cvt{.rn,.rz,.rm,.rp}.f64.{u64,s64} g d",
    "cvt{.rn,.rz,.rm,.rp}.f16.{u16,s16} k h",
    "cvt{.rn,.rz,.rm,.rp}.f16.{u32,s32} k r",
    "cvt{.rn,.rz,.rm,.rp}.f16.{u64,s64} k d",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{u8,s8}.f32 r f",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{u16,s16}.f32 h f",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{u32,s32}.f32 r f",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{u64,s64}.f32 d f",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u16,s16}.f64 h g",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u32,s32}.f64 r g",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u64,s64}.f64 d g",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u16,s16}.f16 h k",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u32,s32}.f16 r k",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.{u64,s64}.f16 d k",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.f32.f32 f f",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.f64.f64 g g",
    "cvt{.rni,.rzi,.rmi,.rpi}{,.sat}.f16.f16 k k",
    "cvt{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32.f64 f g",
    "cvt{,.ftz}{,.sat}.f64.f32 g f",
    "cvt{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f16.f32 k f",
    "cvt{.rn,.rz}{,.relu}.bf16.f32 b f",
    "cvt{.rn,.rz,.rm,.rp}{,.sat}.f16.f64 k g",
    "cvt{,.ftz}{,.sat}.f32.f16 f k",
    "cvt{,.sat}.f64.f16 g k",
    "cvt.f32.bf16 f b",
    "cvt{.rn,.rz}{,.relu}.{f16x2,bf16x2}.f32 r f f",
    "cvt.rna.tf32.f32 r f",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h f f",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 h w",
    "cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} r h",
    "vabsdiff4.{u32,s32}.{u32,s32}.{u32,s32}{,.sat,.add} r w w w",
    "{vadd4,vsub4,vavrg4,vmin4,vmax4}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat} r w w w",
    "{vadd2,vsub2,vavrg2,vmin2,vmax2,vabsdiff2}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat} r w w w",
];

/// Registers of each width that have a value.
#[derive(Default)]
struct Values {
    of: [Vec<String>; 4],
    made: usize,
}

const WIDTHS: [&str; 4] = ["b16", "b32", "b64", "pred"];

fn width(operand: &str) -> usize {
    match operand {
        "h" | "k" | "b" | "2" => 0,
        "d" | "g" | "3" => 2,
        "p" => 3,
        _ => 1,
    }
}

impl Values {
    fn new_register(&mut self, width: usize) -> String {
        self.made += 1;
        format!("%{}{}", ["h", "r", "d", "p"][width], self.made)
    }

    /// An operand: half of the time an input, else what was computed before.
    fn source(&self, operand: &str, inputs: [usize; 4], random: &mut Random) -> String {
        let immediate = random.below(8) == 0;
        match operand {
            "#" => return format!("{}", random.below(256)),
            "4#" => return format!("{}", random.below(16)),
            "f" if immediate => return format!("0f{:08X}", float(random) >> 32),
            "g" if immediate => return format!("0d{:016X}", float(random)),
            "r" if immediate => return format!("{}", random.bits() as i32),
            _ => {}
        }
        let w = width(operand);
        let all = &self.of[w];
        let from = if random.below(2) == 0 {
            inputs[w]
        } else {
            all.len()
        };
        all[random.below(from as u64) as usize].clone()
    }
}

/// Bits of an f64 of moderate size, or a corner.
fn float(random: &mut Random) -> u64 {
    const CORNERS: [f64; 10] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1e9,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
    ];
    if random.below(3) == 0 {
        return random.one(&CORNERS).to_bits();
    }
    let field = 1023 - 20 + random.below(40);
    random.bits() & !(0x7ff << 52) | field << 52
}

/// One of the choices of each brace.
fn choose(pattern: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('{') {
        out += before;
        let (choices, after) = behind.split_once('}').unwrap_or((behind, ""));
        let choices: Vec<&str> = choices.split(',').collect();
        out += random.one(&choices);
        rest = after;
    }
    out + rest
}

/// A program: its body, and a name for each row of the output.
fn program(name: &str, random: &mut Random) -> (String, Vec<String>) {
    let mut values = Values::default();
    let mut body = String::new();
    for i in 0..6 {
        let [d, r, h] = [2, 1, 0].map(|w| values.new_register(w));
        body += &format!("    ld.global.b64 {d}, [%in+{}];\n", 256 * i);
        body += &format!("    cvt.u32.u64 {r}, {d};\n    cvt.u16.u64 {h}, {d};\n");
        for (w, register) in [(2, d), (1, r), (0, h)] {
            values.of[w].push(register);
        }
    }
    for i in 0..2 {
        let p = values.new_register(3);
        let (a, b) = (values.of[1][i].clone(), values.of[1][i + 1].clone());
        body += &format!("    setp.lt.s32 {p}, {a}, {b};\n");
        values.of[3].push(p);
    }
    let inputs = [0, 1, 2, 3].map(|w| values.of[w].len());
    let mut results = Vec::new();
    while results.len() < LENGTH {
        let text = choose(random.one(PATTERNS), random);
        // What is chained reads the carry of the instruction before it, so that nothing may come between.
        let mut written = Vec::new();
        for one in text.split(';') {
            let mut words = one.split(' ');
            let opcode = words.next().unwrap_or_default();
            let operands: Vec<&str> = words.collect();
            let mut sources = Vec::new();
            for operand in &operands[1..] {
                let mut source = values.source(operand, inputs, random);
                if let Some(at) = ["2", "1", "3"].iter().position(|x| x == operand) {
                    let whole = values.new_register(at);
                    let ty = WIDTHS[at];
                    body += &format!("    or.{ty} {whole}, {source}, 1;\n");
                    source = whole;
                }
                if let Some(at) = ["4", "5"].iter().position(|x| x == operand) {
                    let field = values.new_register(1);
                    body += &format!("    and.b32 {field}, {source}, {};\n", [15, 31][at]);
                    source = field;
                }
                // Of two equal operands ptxas makes one.
                if sources.contains(&source) && opcode.starts_with('m') {
                    source.clone_from(&values.of[width(operand)][sources.len()]);
                }
                sources.push(source);
            }
            let w = width(operands[0]);
            let register = values.new_register(w);
            body += &format!("    {opcode} {register}, {};\n", sources.join(", "));
            written.push((w, register, opcode.to_owned()));
        }
        for (w, register, opcode) in written {
            values.of[w].push(register.clone());
            results.push((w, register, opcode));
        }
    }
    let mut rows = Vec::new();
    for (w, register, opcode) in &results {
        let at = 128 * rows.len();
        match w {
            0 => {
                body += &format!(
                    "    cvt.u32.u16 %word, {register};\n    st.global.b32 [%out+{at}], %word;\n"
                );
            }
            1 => body += &format!("    st.global.b32 [%out+{at}], {register};\n"),
            2 => {
                body += &format!(
                    "    mov.b64 {{%word, %high}}, {register};\n    st.global.b32 [%out+{at}], %word;\n    st.global.b32 [%out+{}], %high;\n",
                    at + 128
                );
                rows.push(opcode.clone());
            }
            _ => {
                body += &format!(
                    "    selp.u32 %word, 1, 0, {register};\n    st.global.b32 [%out+{at}], %word;\n"
                );
            }
        }
        rows.push(opcode.clone());
    }
    let n = values.made + 1;
    let text = format!(
        ".visible .entry {name}(.param .u64 in, .param .u64 out)
{{
    .reg .b16 %h<{n}>;
    .reg .b32 %r<{n}>, %word, %high, %t;
    .reg .b64 %d<{n}>, %in, %out;
    .reg .pred %p<{n}>;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %in, %t, 8, %in;
    mad.wide.u32 %out, %t, 4, %out;
{body}    ret;
}}
"
    );
    (text, rows)
}

/// Inputs: random bits, and numbers of each floating-point format.
fn input(set: u64) -> Vec<u8> {
    let mut random = Random(0x1234_5678_9abc_def1 ^ set << 32);
    let mut bytes = Vec::new();
    for row in 0..6 {
        for _ in 0..32 {
            let float = float(&mut random);
            let value = match (row, random.below(4)) {
                (0 | 1, 0) => random.bits() >> random.below(64),
                (0 | 1, _) => random.bits(),
                // An f32 in the low half, with an f16 or bf16 in its low half now and then.
                (2 | 3, n) => {
                    let x = f64::from_bits(float) as f32;
                    let low = match n {
                        0 => random.below(0x1_0000) as u32,
                        1 => 0x3c00 + random.below(0x800) as u32,
                        2 => 0x3f80 + random.below(0x80) as u32,
                        _ => x.to_bits() & 0xffff,
                    };
                    random.bits() << 32 | u64::from(x.to_bits() & 0xffff_0000 | low)
                }
                _ => float,
            };
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

/// `count` programs in one module.
pub(crate) fn batch(batch: u64, count: u64) -> (String, String, Vec<Case>) {
    let module = format!("scalar.{batch:02}.ptx");
    let mut text = String::from(".version 8.4\n.target sm_90\n.address_size 64\n");
    let mut cases = Vec::new();
    for i in 0..count {
        let number = batch * count + i;
        let mut random = Random(0xdead_beef_cafe_f00d ^ (number + 1) << 20);
        let kernel = format!("p{number:04}");
        let (program, rows) = program(&kernel, &mut random);
        text += &program;
        cases.push(Case {
            name: format!("scalar.{kernel}"),
            module: module.clone(),
            kernel,
            grid: 1,
            block: 32,
            input: input(number % SETS),
            out_bytes: 128 * rows.len(),
            rows,
            element: "b32",
            families: &[],
            map: None,
        });
    }
    (module, text, cases)
}
