//! PTX text of a kernel.
//!
//! ```text
//! If                 @!p bra end; then; end:                       with another side: @!p bra else; then; bra end; else: …; end:
//! Loop, Below        counter = start; skip if none; L: body; counter += step; @p bra L
//! Leave, Exit        @p bra to the label behind the loop, or at the end of the kernel
//! ```

use std::fmt::Write as _;

use crate::index::code::Operand;
use crate::index::targets::mnemonic;
use crate::ir::{
    Address, Axis, Binary, Cache, Class, Cmp, Comment, Entry, Hopper, If, Inst, Line, Logic, Loop,
    LoopEnd, Node, ParamKind, Pred, Reg, RoleRegion, Rounding, Shuffle, Space, Special, Src,
    Statement, Type, Unary, class_of,
};

/// The text of a module of several kernels for `target` (such as `sm_80`), at PTX version `version`.
pub(crate) fn module(kernels: &[Entry], version: &str, target: &str) -> String {
    let mut out = String::new();
    for line in kernels.iter().flat_map(|k| &k.comments) {
        let _ = writeln!(out, "// {line}");
    }
    let _ = write!(
        out,
        ".version {version}\n.target {target}\n.address_size 64\n"
    );
    let dynamic = kernels
        .iter()
        .filter_map(|k| k.shared)
        .filter(|s| s.dynamic);
    if let Some(align) = dynamic.map(|s| s.align).max() {
        let _ = writeln!(out, "\n.extern .shared .align {align} .b8 smem[];");
    }
    let mut files = Vec::new();
    for kernel in kernels {
        out.push('\n');
        entry(&mut out, kernel, &mut files);
    }
    for (number, file) in (1..).zip(files) {
        let _ = writeln!(out, ".file {number} {file:?}");
    }
    out
}

/// The text of one entry, from its parameters to its last brace.
fn entry<'k>(out: &mut String, k: &'k Entry, files: &mut Vec<&'k str>) {
    let _ = writeln!(out, ".visible .entry {}(", k.name);
    let params: Vec<_> = k
        .params
        .iter()
        .map(|p| match p.kind {
            ParamKind::TensorMap => format!("    .param .align 64 .b8 {}[128]", p.name),
            kind => format!("    .param {} {}", param_type(kind), p.name),
        })
        .collect();
    let _ = writeln!(out, "{}\n)", params.join(",\n"));
    let [x, y, z] = k.block;
    let _ = writeln!(out, ".reqntid {x}, {y}, {z}");
    if let Some(blocks) = k.min_blocks {
        let _ = writeln!(out, ".minnctapersm {blocks}");
    }
    if let [x, y, z] = k.cluster
        && k.cluster_blocks() > 1
    {
        let _ = writeln!(out, ".reqnctapercluster {x}, {y}, {z}");
    }
    out.push_str("{\n");
    for (class, n) in &k.registers {
        let (ty, prefix) = (class_type(*class), prefix(*class));
        let _ = writeln!(out, "    .reg {ty} {prefix}<{n}>;");
    }
    if let Some(s) = k.shared.filter(|s| !s.dynamic) {
        let _ = writeln!(out, "    .shared .align {} .b8 smem[{}];", s.align, s.bytes);
    }
    let mut taken: Vec<&str> = k.params.iter().map(|p| p.name.as_str()).collect();
    taken.push(&k.name);
    let mut printer = Printer {
        out,
        files: k.lines.then_some(files),
        labels: 0,
        exit: apart(EXIT.to_owned(), &taken),
        taken,
        loops: Vec::new(),
        exits: false,
    };
    printer.nodes(&k.nodes);
    if printer.exits {
        let exit = printer.exit.clone();
        printer.label(&exit);
    }
    printer.line("ret;");
    out.push_str("}\n");
}

/// The label at the end of a kernel.
const EXIT: &str = "done_0";

/// The label, or one like it that no parameter has: labels and parameters share a scope.
fn apart(mut label: String, taken: &[&str]) -> String {
    while taken.contains(&label.as_str()) {
        label.push('_');
    }
    label
}

struct Printer<'a, 'k> {
    out: &'a mut String,
    /// The files of the author's program by number, where the text has its lines.
    files: Option<&'a mut Vec<&'k str>>,
    labels: u32,
    /// Names that are no labels.
    taken: Vec<&'a str>,
    /// The label at the end of the kernel.
    exit: String,
    /// Labels behind the open loops.
    loops: Vec<String>,
    exits: bool,
}

impl Printer<'_, '_> {
    fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.out, "    {text}");
    }

    /// The line of the author's program that emits what follows, where the text has lines.
    fn loc(&mut self, line: Line) {
        let Some(files) = &mut self.files else { return };
        let number = files.iter().position(|file| *file == line.file());
        let number = number.unwrap_or_else(|| {
            files.push(line.file());
            files.len() - 1
        });
        self.line(format_args!(
            ".loc {} {} {}",
            number + 1,
            line.line(),
            line.column()
        ));
    }

    fn label(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    fn new_label(&mut self, stem: &str) -> String {
        self.labels += 1;
        apart(format!("{stem}_{}", self.labels), &self.taken)
    }

    fn branch(&mut self, when: Option<Pred>, uniform: bool, to: &str) {
        let guard = when.map_or(String::new(), guard);
        let uni = if uniform { ".uni" } else { "" };
        self.line(format_args!("{guard}bra{uni} {to};"));
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Inst(s) => self.statement(s),
                Node::Comment(Comment::Text(text)) => self.line(format_args!("// {text}")),
                Node::Comment(Comment::Line(line)) => self.loc(line),
                Node::Assume(stated) => self.line(format_args!("// {}", stated.comment())),
                Node::If(branch) => self.branches(branch),
                Node::Loop(l) => self.repeat(l),
                Node::Roles(roles) => self.roles(roles),
                Node::Leave { when, uniform } => {
                    if let Some(end) = self.loops.last().cloned() {
                        self.branch(Some(*when), *uniform, &end);
                    }
                }
                Node::Exit { when, uniform } => {
                    self.exits = true;
                    let exit = self.exit.clone();
                    self.branch(Some(*when), *uniform, &exit);
                }
            }
        }
    }

    fn branches(&mut self, b: &If) {
        let [other, end] = b.names;
        let end = self.new_label(end);
        if b.otherwise.is_empty() {
            self.branch(Some(b.when.not()), b.uniform, &end);
            self.nodes(&b.then);
        } else {
            let other = self.new_label(other);
            self.branch(Some(b.when.not()), b.uniform, &other);
            self.nodes(&b.then);
            self.branch(None, b.uniform, &end);
            self.label(&other);
            self.nodes(&b.otherwise);
        }
        self.label(&end);
    }

    fn repeat(&mut self, l: &Loop) {
        let label = self.new_label(&l.name);
        let end = match l.behind {
            Some(stem) => self.new_label(stem),
            None => apart(format!("{label}_end"), &self.taken),
        };
        let counter = register(l.counter);
        self.line(format_args!("mov.u32 {counter}, {};", source(l.start)));
        self.nodes(&l.entry);
        if let LoopEnd::Below {
            limit,
            none,
            uniform,
            ..
        } = l.end
        {
            let (p, limit) = (register(none), source(limit));
            self.line(format_args!("setp.ge.u32 {p}, {counter}, {limit};"));
            self.branch(Some(none.into()), uniform, &end);
        }
        self.label(&label);
        self.loops.push(end.clone());
        self.nodes(&l.body);
        self.loops.pop();
        self.line(format_args!("add.s32 {counter}, {counter}, {};", l.step));
        match l.end {
            LoopEnd::Below {
                limit,
                again,
                uniform,
                ..
            } => {
                let (p, limit) = (register(again), source(limit));
                self.line(format_args!("setp.lt.u32 {p}, {counter}, {limit};"));
                self.branch(Some(again.into()), uniform, &label);
            }
            LoopEnd::While { again } => self.branch(Some(again.into()), true, &label),
            LoopEnd::Left => self.branch(None, true, &label),
        }
        self.label(&end);
    }

    /// Each role behind a branch of its own; all but the last leave for the end.
    fn roles(&mut self, roles: &[RoleRegion]) {
        for (i, role) in roles.iter().enumerate() {
            let next = roles.get(i + 1).map(|next| self.new_label(&next.name));
            if let (Some(is), Some(next)) = (role.is, &next) {
                // The text says of no role that all threads of the block agree.
                self.branch(Some(Pred::from(is).not()), false, next);
            }
            self.nodes(&role.body);
            if let Some(next) = next {
                self.exits = true;
                let exit = self.exit.clone();
                self.branch(None, false, &exit);
                self.label(&next);
            }
        }
    }

    fn statement(&mut self, s: &Statement) {
        let guard = s.guard.map_or(String::new(), guard);
        if let Inst::Hopper(inst) = &s.inst {
            let label = match **inst {
                Hopper::Wait { .. } => self.new_label("wait"),
                _ => String::new(),
            };
            for text in super::hopper::lines(inst, &label) {
                if text.ends_with(':') {
                    let _ = writeln!(self.out, "{text}");
                } else {
                    self.tagged(format_args!("{guard}{text};"), s);
                }
            }
            return;
        }
        let text = instruction(&s.inst);
        self.tagged(format_args!("{guard}{text};"), s);
    }

    /// A line of a statement, with its tag.
    fn tagged(&mut self, text: std::fmt::Arguments<'_>, s: &Statement) {
        match &s.tag {
            Some(tag) => self.line(format_args!("{text} // {tag}")),
            None => self.line(text),
        }
    }
}

fn instruction(inst: &Inst) -> String {
    match inst {
        Inst::Index {
            op,
            ty,
            from,
            to,
            args,
        } => {
            let args: Vec<_> = args.iter().map(|&a| operand(a)).collect();
            let (mnemonic, to) = (mnemonic(*op, *ty, *from), register(*to));
            format!("{mnemonic} {to}, {}", args.join(", "))
        }
        Inst::Special { to, register: r } => {
            format!("mov.u32 {}, {}", register(*to), special(*r))
        }
        Inst::Param { to, kind, name } => {
            format!("ld.param{} {}, [{name}]", param_type(*kind), register(*to))
        }
        Inst::ToGlobal { to, from } => {
            format!("cvta.to.global.u64 {}, {}", register(*to), register(*from))
        }
        Inst::SharedBase { to } => format!("mov.u32 {}, smem", register(*to)),
        Inst::Move { ty, to, from } => {
            format!(
                "mov.{} {}, {}",
                type_name(*ty),
                register(*to),
                source(*from)
            )
        }
        Inst::Compare {
            cmp,
            ty,
            to,
            a,
            b,
            and,
        } => {
            let (name, to) = (comparison(*cmp), register(*to));
            let (ty, a, b) = (type_name(*ty), source(*a), source(*b));
            match and {
                None => format!("setp.{name}.{ty} {to}, {a}, {b}"),
                Some(q) => format!("setp.{name}.and.{ty} {to}, {a}, {b}, {}", register(*q)),
            }
        }
        Inst::Logic { op, to, a, b } => {
            let op = match op {
                Logic::And => "and",
                Logic::Or => "or",
                Logic::Xor => "xor",
            };
            format!(
                "{op}.pred {}, {}, {}",
                register(*to),
                register(*a),
                register(*b)
            )
        }
        Inst::Select { ty, to, a, b, p } => format!(
            "selp.{} {}, {}, {}, {}",
            type_name(*ty),
            register(*to),
            source(*a),
            source(*b),
            register(*p)
        ),
        Inst::Binary { op, ty, to, a, b } => format!(
            "{} {}, {}, {}",
            binary(*op, *ty),
            register(*to),
            source(*a),
            source(*b)
        ),
        Inst::MulAdd { ty, to, a, b, c } => {
            let op = if is_float(*ty) { "fma.rn" } else { "mad.lo" };
            format!(
                "{op}.{} {}, {}, {}, {}",
                type_name(*ty),
                register(*to),
                source(*a),
                source(*b),
                source(*c)
            )
        }
        Inst::Unary { op, ty, to, a } => {
            let op = match (op, ty) {
                // Pairs of f16 have no subnormal numbers flushed.
                (Unary::Exp2, Type::F16x2) => "ex2.approx",
                (Unary::Exp2, _) => "ex2.approx.ftz",
                (Unary::Reciprocal, _) => "rcp.approx.ftz",
                (Unary::ReciprocalSqrt, _) => "rsqrt.approx.ftz",
                (Unary::Sqrt, _) => "sqrt.rn",
                (Unary::Log2, _) => "lg2.approx.ftz",
                (Unary::Tanh, _) => "tanh.approx",
                (Unary::Neg, _) => "neg",
                (Unary::Abs, _) => "abs",
            };
            format!("{op}.{} {}, {}", type_name(*ty), register(*to), source(*a))
        }
        Inst::Convert {
            to_ty,
            from_ty,
            to,
            from,
        } => {
            let rounds = match (is_float(*to_ty), is_float(*from_ty)) {
                (true, true) if to_ty.bytes() < from_ty.bytes() => ".rn",
                // Exact, and written with a rounding.
                _ if matches!(from_ty, Type::E4m3x2 | Type::E5m2x2) => ".rn",
                (true, false) => ".rn",
                (false, true) => ".rni",
                _ => "",
            };
            format!(
                "cvt{rounds}.{}.{} {}, {}",
                type_name(*to_ty),
                type_name(*from_ty),
                register(*to),
                register(*from)
            )
        }
        Inst::Round {
            to_ty,
            rounding,
            to,
            from,
        } => {
            let rounding = match rounding {
                Rounding::Nearest => "rni",
                Rounding::Zero => "rzi",
                Rounding::Down => "rmi",
                Rounding::Up => "rpi",
            };
            format!(
                "cvt.{rounding}.sat.{}.f32 {}, {}",
                type_name(*to_ty),
                register(*to),
                register(*from)
            )
        }
        Inst::ConvertPair {
            to_ty,
            to,
            high,
            low,
        } => {
            let saturates = match to_ty {
                Type::E4m3x2 | Type::E5m2x2 => ".satfinite",
                _ => "",
            };
            format!(
                "cvt.rn{saturates}.{}.f32 {}, {}, {}",
                type_name(*to_ty),
                register(*to),
                register(*high),
                register(*low)
            )
        }
        Inst::Pack { to, parts } => format!("mov.b32 {}, {}", register(*to), group(parts)),
        Inst::Unpack { to, from } => format!("mov.b32 {}, {}", group(to), register(*from)),
        Inst::Permute { to, a, b, selector } => format!(
            "prmt.b32 {}, {}, {}, 0x{selector:04x}",
            register(*to),
            register(*a),
            register(*b)
        ),
        Inst::Shuffle {
            mode,
            to,
            from,
            lane,
        } => {
            let (mode, clamp) = match mode {
                Shuffle::Butterfly => ("bfly", 31),
                Shuffle::Index => ("idx", 31),
                Shuffle::Up => ("up", 0),
                Shuffle::Down => ("down", 31),
            };
            format!(
                "shfl.sync.{mode}.b32 {}, {}, {}, {clamp}, 0xffffffff",
                register(*to),
                register(*from),
                source(*lane)
            )
        }
        Inst::Load { at, cache, ty, to } => {
            let cache = match cache {
                Cache::Coherent => "",
                Cache::ReadOnly => ".nc",
            };
            format!(
                "ld.{}{cache}{}.{} {}, {}",
                space(at.space()),
                width(to),
                type_name(*ty),
                vector(to),
                address(*at)
            )
        }
        Inst::Store {
            at,
            ty,
            from,
            atomic: Some(op),
        } => format!(
            "red.{}.{} {}, {}",
            space(at.space()),
            binary(*op, *ty),
            address(*at),
            vector(from)
        ),
        Inst::Store { at, ty, from, .. } => format!(
            "st.{}{}.{} {}, {}",
            space(at.space()),
            width(from),
            type_name(*ty),
            address(*at),
            vector(from)
        ),
        Inst::CopyAsync {
            to,
            from,
            bytes,
            cached,
            size,
        } => {
            let cache = if *cached { "ca" } else { "cg" };
            let size = size.map_or(String::new(), |r| format!(", {}", register(r)));
            format!(
                "cp.async.{cache}.shared.global {}, {}, {bytes}{size}",
                address(*to),
                address(*from)
            )
        }
        Inst::CommitGroup => "cp.async.commit_group".to_owned(),
        Inst::WaitGroup { pending } => format!("cp.async.wait_group {pending}"),
        Inst::WaitAll => "cp.async.wait_all".to_owned(),
        Inst::LoadMatrix { at, to, trans } => {
            let trans = if *trans { ".trans" } else { "" };
            format!(
                "ldmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 {}, {}",
                to.len(),
                group(to),
                address(*at)
            )
        }
        Inst::StoreMatrix { at, from, trans } => {
            let trans = if *trans { ".trans" } else { "" };
            format!(
                "stmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 {}, {}",
                from.len(),
                address(*at),
                group(from)
            )
        }
        Inst::Mma {
            atom,
            d,
            a,
            b,
            c,
            metadata,
        } => {
            let operands = [d, a, b, c].map(|all| group(all)).join(", ");
            let metadata = metadata.map_or(String::new(), |m| {
                format!(", {}, {:#x}", register(m.register), m.selector)
            });
            format!("{} {operands}{metadata}", atom.name)
        }
        Inst::Barrier => "bar.sync 0".to_owned(),
        Inst::WarpBarrier => "bar.warp.sync 0xffffffff".to_owned(),
        // Several lines, which `statement` writes.
        Inst::Hopper(_) => String::new(),
    }
}

fn guard(p: Pred) -> String {
    format!("@{}{} ", if p.negated { "!" } else { "" }, register(p.reg))
}

fn prefix(class: Class) -> &'static str {
    match class {
        Class::B16 => "%h",
        Class::B32 => "%r",
        Class::B64 => "%rd",
        Class::F32 => "%f",
        Class::F64 => "%fd",
        Class::Pred => "%p",
    }
}

/// The type of a register class in declarations.
pub(crate) fn class_type(class: Class) -> &'static str {
    match class {
        Class::B16 => ".b16",
        Class::B32 => ".b32",
        Class::B64 => ".b64",
        Class::F32 => ".f32",
        Class::F64 => ".f64",
        Class::Pred => ".pred",
    }
}

/// A register's name in the text.
pub(crate) fn register(reg: Reg) -> String {
    format!("{}{}", prefix(reg.class), reg.id)
}

fn source(src: Src) -> String {
    match src {
        Src::Reg(r) => register(r),
        Src::Int(k) => k.to_string(),
        Src::F32(bits) => format!("0f{bits:08X}"),
        Src::F64(bits) => format!("0d{bits:016X}"),
    }
}

fn operand(v: Operand) -> String {
    match v {
        Operand::Imm(k) => k.to_string(),
        Operand::Reg(id, ty) => register(Reg {
            class: class_of(ty),
            id,
        }),
    }
}

pub(super) fn address(at: Address) -> String {
    match at.immediate() {
        0 => format!("[{}]", register(at.base())),
        k => format!("[{}+{k}]", register(at.base())),
    }
}

/// `{a, b, c, d}`
pub(super) fn group(regs: &[Reg]) -> String {
    let list: Vec<_> = regs.iter().map(|&r| register(r)).collect();
    format!("{{{}}}", list.join(", "))
}

/// `{a, b, c, d}`, or the register alone.
pub(super) fn vector(regs: &[Reg]) -> String {
    match regs {
        [one] => register(*one),
        _ => group(regs),
    }
}

pub(super) fn width(regs: &[Reg]) -> String {
    match regs {
        [_] => String::new(),
        _ => format!(".v{}", regs.len()),
    }
}

fn space(space: Space) -> &'static str {
    match space {
        Space::Global => "global",
        Space::Shared => "shared",
    }
}

fn special(register: Special) -> &'static str {
    match register {
        Special::Thread(Axis::X) => "%tid.x",
        Special::Thread(Axis::Y) => "%tid.y",
        Special::Thread(Axis::Z) => "%tid.z",
        Special::Block(Axis::X) => "%ctaid.x",
        Special::Block(Axis::Y) => "%ctaid.y",
        Special::Block(Axis::Z) => "%ctaid.z",
    }
}

fn param_type(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Pointer | ParamKind::U64 => ".u64",
        ParamKind::U32 => ".u32",
        ParamKind::S32 => ".s32",
        ParamKind::F32 => ".f32",
        ParamKind::F64 => ".f64",
        // Declared as bytes.
        ParamKind::TensorMap => ".b8",
    }
}

fn comparison(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Eq => "eq",
        Cmp::Ne => "ne",
        Cmp::Lt => "lt",
        Cmp::Le => "le",
        Cmp::Gt => "gt",
        Cmp::Ge => "ge",
        Cmp::Neu => "neu",
    }
}

fn is_float(ty: Type) -> bool {
    matches!(
        ty,
        Type::F16
            | Type::Bf16
            | Type::F16x2
            | Type::Bf16x2
            | Type::E4m3x2
            | Type::E5m2x2
            | Type::F32
            | Type::F64
    )
}

fn binary(op: Binary, ty: Type) -> String {
    let name = match op {
        Binary::Add => "add",
        Binary::Sub => "sub",
        Binary::Mul if is_float(ty) => "mul",
        Binary::Mul => "mul.lo",
        Binary::MulHi => "mul.hi",
        Binary::Div => "div",
        Binary::Rem => "rem",
        Binary::Min => "min",
        Binary::Max => "max",
        Binary::MinNan => "min.NaN",
        Binary::MaxNan => "max.NaN",
        Binary::Shl => "shl",
        Binary::Shr => "shr",
        Binary::And => "and",
        Binary::Or => "or",
        Binary::Xor => "xor",
    };
    format!("{name}.{}", type_name(ty))
}

pub(super) fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::B16 => "b16",
        Type::B32 => "b32",
        Type::B64 => "b64",
        Type::U8 => "u8",
        Type::S8 => "s8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F16 => "f16",
        Type::Bf16 => "bf16",
        Type::F16x2 => "f16x2",
        Type::Bf16x2 => "bf16x2",
        Type::E4m3x2 => "e4m3x2",
        Type::E5m2x2 => "e5m2x2",
        Type::F32 => "f32",
        Type::F64 => "f64",
    }
}
