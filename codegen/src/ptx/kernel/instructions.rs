//! What stands where it is written: comparisons of rare paths, loads and stores, comments, labels and branches.

use std::fmt::Display;

use super::Kernel;
use crate::index::Expr;
use crate::index::code::{Ty, type_of};
use crate::ptx::Address;
use crate::ptx::text::{Class, Pred, Reg, vector};

impl Kernel {
    /// The predicate `a <comparison> k`, `and` another if given, computed right here: for paths that are rarely taken, whose
    /// predicates must not occupy registers elsewhere.
    pub fn compare_here(
        &mut self,
        comparison: &'static str,
        a: Expr,
        k: i64,
        and: Option<Reg>,
    ) -> Reg {
        let ty = match type_of(&self.pool, a) {
            Ty::U32 => "u32",
            Ty::S32 => "s32",
            Ty::U64 => "u64",
            Ty::S64 => "s64",
        };
        let a = self.value(a);
        let p = self.reg(Class::Pred);
        let line = match and {
            None => format!("setp.{comparison}.{ty} {p}, {a}, {k};"),
            Some(q) => format!("setp.{comparison}.and.{ty} {p}, {a}, {k}, {q};"),
        };
        self.scope().body.push(line);
        p
    }

    /// The predicate `a and b`, right here.
    pub fn and_here(&mut self, a: Reg, b: Reg) -> Reg {
        let p = self.reg(Class::Pred);
        self.scope().body.push(format!("and.pred {p}, {a}, {b};"));
        p
    }

    /// Marks the instruction written last, so that it can be found in the finished text.
    pub fn tag(&mut self, name: &str) {
        if let Some(line) = self.scope().body.last_mut() {
            line.push_str(" // ");
            line.push_str(name);
        }
    }

    /// A register of `class` with a constant, at the kernel's entry: `text` is the literal.
    pub fn literal(&mut self, class: Class, text: &str) -> Reg {
        let reg = self.reg(class);
        let home = self.home(0);
        let ty = class.type_name();
        self.scopes[home]
            .top
            .push(format!("mov{ty} {reg}, {text};"));
        reg
    }

    /// An instruction that touches no memory.
    pub fn ins(&mut self, text: impl Display) {
        self.scope().body.push(format!("{text};"));
    }

    /// A guarded instruction that touches no memory.
    pub fn ins_if(&mut self, p: impl Into<Pred>, text: impl Display) {
        let p = p.into();
        self.scope().body.push(format!("{p} {text};"));
    }

    /// A comment line in the text.
    pub fn comment(&mut self, text: impl Display) {
        self.scope().body.push(format!("// {text}"));
    }

    /// Loads `regs` (1, 2 or 4 of one class) from `at`. `kind` is what stands between the space and the type, such as `.nc`.
    pub fn load(&mut self, guard: Option<Pred>, kind: &str, ty: &str, regs: &[Reg], at: Address) {
        let guard = guard.map_or(String::new(), |p| format!("{p} "));
        let v = if regs.len() == 1 {
            String::new()
        } else {
            format!(".v{}", regs.len())
        };
        self.scope().body.push(format!(
            "{guard}ld.{}{kind}{v}.{ty} {}, {at};",
            at.space().suffix(),
            vector(regs)
        ));
    }

    /// Stores `regs` (1, 2 or 4 of one class) to `at`.
    pub fn store(&mut self, guard: Option<Pred>, ty: &str, regs: &[Reg], at: Address) {
        let guard = guard.map_or(String::new(), |p| format!("{p} "));
        let v = if regs.len() == 1 {
            String::new()
        } else {
            format!(".v{}", regs.len())
        };
        self.scope().body.push(format!(
            "{guard}st.{}{v}.{ty} {at}, {};",
            at.space().suffix(),
            vector(regs)
        ));
    }

    /// An instruction with memory operands: `{0}`, `{1}`, … in `text` stand for them.
    pub fn memory_ins(&mut self, guard: Option<Pred>, text: &str, at: &[Address]) {
        let mut line = guard.map_or(String::new(), |p| format!("{p} "));
        line.push_str(text);
        for (i, a) in at.iter().enumerate() {
            line = line.replace(&format!("{{{i}}}"), &a.to_string());
        }
        line.push(';');
        self.scope().body.push(line);
    }

    /// A label that was not used before.
    pub fn label(&mut self, stem: &str) -> String {
        self.labels += 1;
        format!("{stem}_{}", self.labels)
    }

    /// Places a label here.
    pub fn place(&mut self, label: &str) {
        self.scope().body.push(format!("{label}:"));
    }

    /// Branches to `label` where `p` holds; all threads of a block agree if `uniform`.
    pub fn branch(&mut self, p: Option<Pred>, label: &str, uniform: bool) {
        let guard = p.map_or(String::new(), |p| format!("{p} "));
        let uni = if uniform { ".uni" } else { "" };
        self.scope().body.push(format!("{guard}bra{uni} {label};"));
    }
}
