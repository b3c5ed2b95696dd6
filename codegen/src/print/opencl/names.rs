//! What registers are called.
//!
//! A register that holds a parameter has the parameter's name, one that holds a named value of the kernel (a thread index, a loop counter) has
//! that name, and one that holds an address is called after the view that is accessed through it. All others have the names that they have in
//! PTX, without the percent sign, so that the two texts can be read side by side.

use std::collections::{BTreeMap, HashSet};

use crate::index::code::Operand;
use crate::ir::{Address, Class, Entry, Inst, Node, Place, Reg, Space, class_of};

/// Words that OpenCL C reserves or defines, and the names that this printer uses.
const RESERVED: [&str; 73] = [
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "complex",
    "const",
    "constant",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "event_t",
    "extern",
    "false",
    "float",
    "for",
    "generic",
    "global",
    "goto",
    "half",
    "if",
    "imaginary",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "inline",
    "int",
    "kernel",
    "local",
    "long",
    "pipe",
    "private",
    "quad",
    "read_only",
    "read_write",
    "register",
    "restrict",
    "return",
    "sampler_t",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "true",
    "typedef",
    "uchar",
    "uint",
    "ulong",
    "union",
    "uniform",
    "unsigned",
    "ushort",
    "void",
    "volatile",
    "while",
    "write_only",
    "size_t",
    "barrier",
    "fma",
    "min",
    "max",
    "fmin",
    "fmax",
    "mul_hi",
    "exp2",
    "log2",
    "smem",
    "NAN",
];

/// Whether a kernel cannot have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The names of a kernel's registers and parameters.
pub(super) struct Names {
    registers: BTreeMap<Reg, String>,
    parameters: BTreeMap<String, String>,
    taken: HashSet<String>,
}

impl Names {
    pub(super) fn of(entry: &Entry) -> Self {
        let mut names = Self {
            registers: BTreeMap::new(),
            parameters: BTreeMap::new(),
            taken: RESERVED.iter().map(|&w| w.to_owned()).collect(),
        };
        for class in Class::ALL {
            for id in 0..entry.registers.get(&class).copied().unwrap_or(0) {
                names.taken.insert(plain(Reg { class, id }));
            }
        }
        for p in &entry.params {
            let name = names.free(&p.name);
            names.parameters.insert(p.name.clone(), name);
        }
        let mut pointers = BTreeMap::new();
        names.values_of_parameters(&entry.nodes, &mut pointers);
        names.variables(entry);
        let mut addresses = Vec::new();
        collect(&entry.nodes, &mut addresses);
        names.addresses(entry, &addresses);
        names
    }

    /// A name like `stem` that nothing else has.
    pub(super) fn free(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut n = 1;
        while !self.taken.insert(name.clone()) {
            n += 1;
            name = format!("{stem}_{n}");
        }
        name
    }

    pub(super) fn register(&self, reg: Reg) -> String {
        let known = self.registers.get(&reg);
        known.cloned().unwrap_or_else(|| plain(reg))
    }

    /// Whether a register has a name of its own, not its number.
    pub(super) fn is_named(&self, reg: Reg) -> bool {
        self.registers.contains_key(&reg)
    }

    pub(super) fn parameter<'n>(&'n self, name: &'n str) -> &'n str {
        self.parameters.get(name).map_or(name, String::as_str)
    }

    /// Parameters are never assigned, so that the register has the parameter's name and no statement.
    fn values_of_parameters(&mut self, nodes: &[Node], pointers: &mut BTreeMap<Reg, String>) {
        for node in nodes {
            let Node::Inst(s) = node else { continue };
            match &s.inst {
                Inst::Param { to, name, .. } => {
                    let name = self.parameter(name).to_owned();
                    pointers.insert(*to, name.clone());
                    self.registers.insert(*to, name);
                }
                Inst::ToGlobal { to, from } => {
                    if let Some(name) = pointers.get(from) {
                        let name = self.free(&format!("{name}_bytes"));
                        self.registers.insert(*to, name);
                    }
                }
                _ => {}
            }
        }
    }

    fn variables(&mut self, entry: &Entry) {
        let mut all: Vec<_> = entry.variables.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        for (name, operand) in all {
            let Operand::Reg(id, ty) = *operand else {
                continue;
            };
            let reg = Reg {
                class: class_of(ty),
                id,
            };
            let numbered = ["select.", "bounded.", "not_negative."];
            if self.registers.contains_key(&reg) || numbered.iter().any(|n| name.starts_with(n)) {
                continue;
            }
            let stem = match name.as_str() {
                "tid.x" => "thread",
                "ctaid.x" => "group_x",
                "ctaid.y" => "group_y",
                "ctaid.z" => "group_z",
                "smem" => "smem_base",
                // A loop's counter is called `k0.3`.
                _ => name.split('.').next().unwrap_or(name),
            };
            let name = self.free(stem);
            self.registers.insert(reg, name);
        }
    }

    /// An address is called after all buffers that are accessed through it.
    fn addresses(&mut self, entry: &Entry, all: &[Address]) {
        let mut of: BTreeMap<Reg, Vec<String>> = BTreeMap::new();
        for at in all {
            let known = of.entry(at.base()).or_default();
            buffers(entry, at.place(), known);
        }
        for at in all {
            let Some(of) = of.get(&at.base()).filter(|of| !of.is_empty()) else {
                continue;
            };
            if self.registers.contains_key(&at.base()) {
                continue;
            }
            let what = if at.space() == Space::Global {
                "at"
            } else {
                "offset"
            };
            let stem = of
                .join("_or_")
                .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let name = self.free(&format!("{stem}_{what}"));
            self.registers.insert(at.base(), name);
        }
    }
}

/// The addresses of all loads and stores, in order.
fn collect(nodes: &[Node], all: &mut Vec<Address>) {
    for node in nodes {
        match node {
            Node::Inst(s) => match &s.inst {
                Inst::Load { at, .. } | Inst::Store { at, .. } => all.push(*at),
                _ => {}
            },
            Node::If(b) => {
                collect(&b.then, all);
                collect(&b.otherwise, all);
            }
            Node::Loop(l) => {
                collect(&l.entry, all);
                collect(&l.body, all);
            }
            Node::Roles(roles) => roles.iter().for_each(|role| collect(&role.body, all)),
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => {}
        }
    }
}

/// Adds the names of the buffers that a place may be in.
fn buffers(entry: &Entry, place: u32, all: &mut Vec<String>) {
    match entry.places.get(place as usize) {
        Some(Place::Element { buffer, .. }) => {
            let name = &entry.buffers[*buffer].name;
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        Some(Place::Either {
            then, otherwise, ..
        }) => {
            buffers(entry, *then, all);
            buffers(entry, *otherwise, all);
        }
        None => {}
    }
}

/// The name in PTX without its percent sign.
fn plain(reg: Reg) -> String {
    let prefix = match reg.class {
        Class::B16 => "h",
        Class::B32 => "r",
        Class::B64 => "rd",
        Class::F32 => "f",
        Class::F64 => "fd",
        Class::Pred => "p",
    };
    format!("{prefix}{}", reg.id)
}
