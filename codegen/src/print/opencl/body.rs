//! The statements of a kernel: regions as braces, instructions as assignments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::OpenClError;
use super::anew::{Anew, is_straight, mentioned, words};
use super::expression::{Operands, bare, constant};
use super::instruction::{Missing, value};
use super::memory;
use super::names::Names;
use super::order::{Held, Order, four_wavefronts, holds, multiplies};
use super::pointers::Pointers;
use super::scopes::Declarations;
use super::windows::Windows;
use crate::ir::{
    Address, Class, Comment, Entry, If, Inst, Loop, LoopEnd, Node, Pred, Reg, Space, Src,
    Statement, Type,
};

/// The macros that a text needs.
#[derive(Default)]
pub(super) struct Macros {
    /// The numbers of values that `KEEP` is used with.
    pub(super) arities: BTreeSet<usize>,
    /// `FAR` and `NEAR`.
    pub(super) windows: bool,
    /// The kernel has a loop of which four wavefronts fit on a SIMD.
    pub(super) four: bool,
}

/// The longest value that stands where it is used.
const INLINED: usize = 48;

/// Bases of addresses of local memory, each a register in the loop, beside which clang 16 finds room for four wavefronts a SIMD; with more it spills.
const BASES_OF_FOUR: usize = 3;

/// A kernel's body while it is printed.
pub(super) struct Body<'a> {
    entry: &'a Entry,
    operands: Operands<'a>,
    declarations: &'a Declarations,
    out: String,
    depth: usize,
    declared: BTreeSet<Reg>,
    /// Vectors so far, and what they are called before their number.
    vectors: u32,
    vector: String,
    /// In a loop of which four wavefronts fit on a SIMD: its windows of local memory; and what their variables are called before their number.
    windows: Windows,
    far: String,
    near: String,
    /// In a loop that multiplies: what is held back.
    order: Option<Order>,
    macros: Macros,
    /// What threads do not share, before the first loop of products; and whether that loop has ended.
    anew: Anew,
    multiplied: bool,
    /// In a loop without branches of which four wavefronts fit on a SIMD: the pointers that it advances.
    four: Option<BTreeSet<Reg>>,
    /// Some threads of a block may be elsewhere: in a branch that not all take, or gone.
    apart: usize,
}

impl<'a> Body<'a> {
    pub(super) fn new(
        entry: &'a Entry,
        names: &'a mut Names,
        pointers: &'a Pointers,
        declarations: &'a Declarations,
    ) -> Self {
        let [vector, far, near] = ["v", "far", "near"].map(|stem| names.free(stem));
        let names = &*names;
        Self {
            entry,
            operands: Operands::new(names, pointers),
            declarations,
            out: String::new(),
            depth: 1,
            declared: BTreeSet::new(),
            vectors: 0,
            vector,
            windows: Windows::default(),
            far,
            near,
            order: None,
            macros: Macros::default(),
            anew: Anew::default(),
            multiplied: false,
            four: None,
            apart: 0,
        }
    }

    /// The text, and the macros in it.
    pub(super) fn text(mut self) -> Result<(String, Macros), OpenClError> {
        self.declare();
        let nodes = &self.entry.nodes;
        match self.nodes(nodes) {
            Ok(()) => Ok((self.out, self.macros)),
            Err((what, instead)) => Err(OpenClError {
                kernel: self.entry.name.clone(),
                what,
                instead,
            }),
        }
    }

    fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 4 * self.depth);
    }

    /// Registers that are not declared with a value, a line for each eight of a type.
    fn declare(&mut self) {
        for class in Class::ALL {
            let of = |r: &&Reg| r.class == class;
            let all: Vec<Reg> = self
                .declarations
                .at_top
                .iter()
                .filter(of)
                .copied()
                .collect();
            for some in all.chunks(8) {
                let (pointers, numbers): (Vec<Reg>, Vec<Reg>) =
                    some.iter().partition(|r| self.operands.is_pointer(**r));
                for r in pointers {
                    let (ty, name) = (self.operands.declared(r), self.operands.register(r));
                    self.line(format_args!("{ty}{name};"));
                }
                if let Some(first) = numbers.first() {
                    let names: Vec<_> =
                        numbers.iter().map(|&r| self.operands.register(r)).collect();
                    let ty = self.operands.declared(*first);
                    self.line(format_args!("{ty}{};", names.join(", ")));
                }
            }
        }
    }

    fn inside(&mut self, nodes: &[Node]) -> Result<(), Missing> {
        self.depth += 1;
        self.nodes(nodes)?;
        self.depth -= 1;
        Ok(())
    }

    /// The body of a loop.
    fn iteration(&mut self, nodes: &[Node]) -> Result<(), Missing> {
        let outer = self.order.take();
        let multiplies = multiplies(nodes);
        self.order = multiplies.then(Order::default);
        self.depth += 1;
        if multiplies && self.multiplied {
            self.declare_anew(nodes);
        } else if multiplies && is_straight(nodes) {
            let pointers = self.advanced(nodes);
            if four_wavefronts(nodes) {
                self.four = Some(pointers);
                self.macros.four |= self.windows.bases.len() <= BASES_OF_FOUR;
            } else {
                self.keep_pointers(&pointers);
            }
        }
        self.nodes(nodes)?;
        self.release(&[]);
        self.four = None;
        self.windows = Windows::default();
        self.depth -= 1;
        if let Some(order) = std::mem::replace(&mut self.order, outer) {
            self.macros.arities.extend(order.arities);
        }
        Ok(())
    }

    /// Declares what these nodes need and threads do not share once more, so that it was in no register before.
    fn declare_anew(&mut self, nodes: &[Node]) {
        let mut registers = BTreeSet::new();
        mentioned(nodes, &mut registers);
        let mut needed = BTreeSet::new();
        for r in registers {
            let text = self.operands.register(r);
            needed.extend(words(&text).map(str::to_owned));
        }
        let lines = self.anew.lines(needed);
        if lines.iter().any(|line| line.starts_with("KEEP1")) {
            self.macros.arities.insert(1);
        }
        for line in lines {
            self.line(line);
        }
    }

    /// The pointers that a loop advances.
    fn advanced(&self, body: &[Node]) -> BTreeSet<Reg> {
        let results = body.iter().filter_map(|node| match node {
            Node::Inst(s) => Some(s.inst.results()),
            _ => None,
        });
        let pointer = |r: &Reg| self.operands.is_pointer(*r) && !self.declarations.is_constant(*r);
        results.flatten().filter(pointer).collect()
    }

    /// Keeps the pointers that a loop advances in their registers: compilers would advance each sum of them instead.
    fn keep_pointers(&mut self, pointers: &BTreeSet<Reg>) {
        for &r in pointers {
            self.macros.arities.insert(1);
            let name = self.operands.register(r);
            self.line(format_args!("KEEP1({name});"));
        }
    }

    /// Declares the bases of a loop's windows of local memory.
    fn open_windows(&mut self, body: &[Node]) {
        self.windows = Windows::of(self.entry, body, &self.far);
        self.macros.windows |= !self.windows.bases.is_empty();
        let mut lines = Vec::new();
        for (reg, base) in &self.windows.bases {
            let (name, far, bits) = (self.operands.register(*reg), &base.far, base.bits);
            lines.push(format!("FAR({far}, {name}, {bits:#x}u);"));
        }
        for line in lines {
            self.line(line);
        }
    }

    /// The text of an access with its address in a window, which begins here if it is not that of the access before.
    fn in_window(&mut self, at: Address, text: &str) -> String {
        let number = self.windows.count + 1;
        let Some((base, window)) = self.windows.base_of(at) else {
            return text.to_owned();
        };
        let name = self.operands.register(at.base());
        let (far, mask) = (base.far.clone(), base.size - 1);
        let known = base.near.as_ref().filter(|(w, _)| *w == window);
        let (near, begins) = match known {
            Some((_, near)) => (near.clone(), false),
            None => (format!("{}{number}", self.near), true),
        };
        base.near = Some((window, near.clone()));
        if begins {
            self.windows.count = number;
            self.line(format_args!(
                "NEAR({near}, {far}, {name}, {window}u, {mask}u);"
            ));
        }
        let before = memory::address(&self.operands, at);
        let after = match at.immediate() - window {
            0 => format!("smem + {near}"),
            k => format!("smem + {near} + {k}"),
        };
        text.replacen(&before, &after, 1)
    }

    /// Holds a load back until what it loads is used.
    fn hold(&mut self, s: &Statement) {
        let Inst::Load { at, ty, to, .. } = &s.inst else {
            return;
        };
        let (vector, load) = self.vector_load(*at, *ty, to.len(), s.tag.as_deref());
        if let Some(order) = &mut self.order {
            order.hold(Held {
                vector,
                load,
                to: to.clone(),
                at: *at,
                ty: *ty,
                global: at.space() == Space::Global,
            });
        }
    }

    /// Loads what the first of these nodes needs, after the products so far and before its own.
    fn release(&mut self, nodes: &[Node]) {
        let Some(order) = &mut self.order else { return };
        let due = order.due(nodes);
        let sums = if due.is_empty() {
            Vec::new()
        } else {
            order.sums()
        };
        if let Some(Node::Inst(s)) = nodes.first() {
            order.product(&s.inst);
        }
        if due.is_empty() {
            return;
        }
        let sums: Vec<_> = sums.iter().map(|&r| self.operands.register(r)).collect();
        let vectors: Vec<_> = due.iter().map(|held| held.vector.clone()).collect();
        let (before, after) = (order.keep(&sums), order.keep(&vectors));
        for line in before {
            self.line(line);
        }
        // What comes from global memory is not loaded before: its address is kept until here.
        let of_global = due.iter().filter(|held| held.global);
        let named: BTreeSet<&str> = of_global.flat_map(|held| words(&held.load)).collect();
        let of_these = |r: &Reg| named.contains(self.operands.register(*r).as_str());
        let pointers = self.four.iter().flatten().copied();
        let pointers: BTreeSet<Reg> = pointers.filter(of_these).collect();
        self.keep_pointers(&pointers);
        for held in &due {
            let load = self.in_window(held.at, &held.load);
            self.line(load);
        }
        for line in after {
            self.line(line);
        }
        for held in &due {
            self.parts(&held.vector, held.ty, &held.to, true);
        }
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<(), Missing> {
        let mut rest = nodes;
        // Blocks in which what threads do not share is declared anew: they end with the region.
        let mut blocks = 0;
        while let Some((node, after)) = rest.split_first() {
            self.release(rest);
            let alike = self.literals(rest);
            if alike > 1 {
                self.set(&rest[..alike]);
                rest = &rest[alike..];
                continue;
            }
            rest = after;
            match node {
                Node::Inst(s) if self.order.is_some() && holds(s, self.four.is_some()) => {
                    self.hold(s);
                }
                Node::Inst(s) => {
                    self.statement(s)?;
                    if self.multiplied && self.order.is_some() && matches!(s.inst, Inst::Barrier) {
                        let sums = self.order.as_mut().map(Order::sums).unwrap_or_default();
                        self.keep(&sums);
                        blocks += self.block(rest);
                    }
                }
                Node::Comment(Comment::Text(text)) => self.line(format_args!("// {text}")),
                Node::Comment(Comment::Line(_)) => {}
                Node::Assume(stated) => self.line(format_args!("// {}", stated.comment())),
                Node::If(branch) => self.branches(branch)?,
                Node::Roles(_) => {
                    return super::instruction::missing("roles of a block");
                }
                Node::Loop(iterations) => {
                    self.iterations(iterations)?;
                    if self.depth == 1 && multiplies(&iterations.body) {
                        self.multiplied = true;
                        blocks += self.block(rest);
                    }
                }
                Node::Leave { when, uniform } => {
                    self.apart += usize::from(!uniform);
                    let when = self.predicate(*when);
                    self.line(format_args!("if ({when}) break;"));
                }
                Node::Exit { when, uniform } => {
                    self.apart += usize::from(!uniform);
                    let when = self.predicate(*when);
                    self.line(format_args!("if ({when}) return;"));
                }
            }
        }
        if blocks > 0 {
            self.release(&[]);
        }
        for _ in 0..blocks {
            self.depth -= 1;
            self.line("}");
        }
        Ok(())
    }

    /// Keeps registers where they are.
    fn keep(&mut self, registers: &[Reg]) {
        let names: Vec<_> = registers
            .iter()
            .map(|&r| self.operands.register(r))
            .collect();
        let lines = self.order.as_mut().map(|order| order.keep(&names));
        for line in lines.into_iter().flatten() {
            self.line(line);
        }
    }

    /// Begins a block for these nodes, if there are any, and says how many it began.
    fn block(&mut self, nodes: &[Node]) -> usize {
        if nodes.is_empty() {
            return 0;
        }
        self.line("{");
        self.depth += 1;
        self.declare_anew(nodes);
        1
    }

    /// How many instructions at the start declare registers of one class, each with a literal.
    fn literals(&self, nodes: &[Node]) -> usize {
        let class = |node: &Node| {
            let (to, _, _) = literal(node)?;
            let fresh = self.declarations.with_value(to) == Some(false);
            (fresh && !self.declared.contains(&to)).then_some(to.class)
        };
        let first = nodes.first().and_then(class);
        let alike = |node: &&Node| first.is_some() && class(node) == first;
        nodes.iter().take_while(alike).count()
    }

    /// Declares registers of one class with literals, eight a line.
    fn set(&mut self, nodes: &[Node]) {
        for some in nodes.chunks(8) {
            let mut parts = Vec::new();
            let mut ty = "";
            for (to, from, of) in some.iter().filter_map(literal) {
                self.declared.insert(to);
                ty = self.operands.declared(to);
                let (name, value) = (self.operands.register(to), self.operands.source(from, of));
                parts.push(format!("{name} = {value}"));
            }
            self.line(format_args!("{ty}{};", parts.join(", ")));
        }
    }

    fn branches(&mut self, b: &If) -> Result<(), Missing> {
        let apart = usize::from(!b.uniform);
        self.apart += apart;
        let when = self.predicate(b.when);
        self.line(format_args!("if ({when}) {{"));
        self.inside(&b.then)?;
        if !b.otherwise.is_empty() {
            self.line("} else {");
            self.inside(&b.otherwise)?;
        }
        self.line("}");
        self.apart -= apart;
        Ok(())
    }

    fn iterations(&mut self, l: &Loop) -> Result<(), Missing> {
        let start = self.operands.source(l.start, Type::U32);
        self.assign(l.counter, &start, true, None);
        self.nodes(&l.entry)?;
        let counter = self.operands.register(l.counter);
        let step = constant(l.step, false);
        let advance = format!("{counter} += {step}");
        if !self.multiplied && four_wavefronts(&l.body) && is_straight(&l.body) {
            self.open_windows(&l.body);
        }
        match l.end {
            LoopEnd::Below { limit, .. } => {
                let limit = self.operands.source(limit, Type::U32);
                self.line(format_args!("for (; {counter} < {limit}; {advance}) {{"));
                self.iteration(&l.body)?;
                self.line("}");
            }
            LoopEnd::While { again } => {
                self.line("do {");
                self.iteration(&l.body)?;
                self.line(format_args!("    {advance};"));
                let again = self.operands.register(again);
                self.line(format_args!("}} while ({again});"));
            }
            LoopEnd::Left => {
                self.line(format_args!("for (;; {advance}) {{"));
                self.iteration(&l.body)?;
                self.line("}");
            }
        }
        Ok(())
    }

    fn predicate(&self, p: Pred) -> String {
        let name = self.operands.register(p.reg);
        if p.negated {
            return format!("!{name}");
        }
        bare(&name).to_owned()
    }

    fn statement(&mut self, s: &Statement) -> Result<(), Missing> {
        let Some(guard) = s.guard else {
            return self.instruction(s, true);
        };
        let guard = self.predicate(guard);
        self.line(format_args!("if ({guard}) {{"));
        self.depth += 1;
        self.instruction(s, false)?;
        self.depth -= 1;
        self.line("}");
        Ok(())
    }

    /// One instruction; `always` if it has no guard.
    fn instruction(&mut self, s: &Statement, always: bool) -> Result<(), Missing> {
        let tag = s.tag.as_deref();
        match &s.inst {
            // Its register is the parameter.
            Inst::Param { .. } => Ok(()),
            Inst::Load { at, ty, to, .. } => {
                self.load(*at, *ty, to, always, tag);
                Ok(())
            }
            Inst::Store {
                atomic: Some(_), ..
            } => Err((
                "an atomic operation".to_owned(),
                "kernels with atomic operations are for CUDA",
            )),
            Inst::Store { at, ty, from, .. } => {
                self.store(*at, *ty, from, tag);
                Ok(())
            }
            Inst::Unpack { to, from } => {
                let from = self.operands.register(*from);
                for (i, r) in to.iter().enumerate() {
                    self.assign(*r, &format!("(ushort)({from} >> {})", 16 * i), always, tag);
                }
                Ok(())
            }
            Inst::Barrier => self.barrier("a barrier"),
            // Memory that only a warp orders is ordered by the whole group as well.
            Inst::WarpBarrier => self.barrier("a barrier of a warp"),
            inst => {
                let text = value(&self.operands, inst)?;
                if let [to] = inst.results()[..] {
                    if always && self.inlines(inst, to, &text) {
                        self.operands.inline(to, &text);
                    } else {
                        let from = self.out.len();
                        self.assign(to, &text, always, tag);
                        let constant = |r: &Reg| self.declarations.is_constant(*r);
                        let lasts = self.depth == 1 && constant(&to);
                        if lasts && inst.sources().iter().all(constant) {
                            let line = self.out[from..].trim().to_owned();
                            let name = self.operands.register(to);
                            self.anew.note(&name, &text, line);
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Whether the value of an integer or a predicate stands where it is used: it is used once, is short, and is the same there.
    fn inlines(&self, inst: &Inst, to: Reg, text: &str) -> bool {
        let names = self.operands.names;
        let integer = matches!(
            inst,
            Inst::Index { .. }
                | Inst::Compare { .. }
                | Inst::Logic { .. }
                | Inst::Select { .. }
                | Inst::Move { .. }
        );
        let constant = |r: &Reg| self.declarations.is_constant(*r);
        // Where a tile is loaded behind the products, so is its address computed: from a pointer that the end of the iteration advances.
        let advanced = |r: &Reg| self.four.as_ref().is_some_and(|all| all.contains(r));
        let late = self.operands.is_pointer(to) && inst.sources().iter().any(advanced);
        let same = |r: &Reg| constant(r) || (late && advanced(r));
        integer
            && matches!(to.class, Class::B32 | Class::B64 | Class::Pred)
            && text.len() <= INLINED
            && (late || !names.is_named(to))
            && self.declarations.is_used_once(to)
            && inst.sources().iter().all(same)
    }

    fn barrier(&mut self, what: &str) -> Result<(), Missing> {
        if self.apart > 0 {
            let what = format!("{what} where not all threads of the block come by");
            return Err((what, "a work-group's barrier is met by all of its threads"));
        }
        self.line("barrier(CLK_LOCAL_MEM_FENCE);");
        Ok(())
    }

    fn load(&mut self, at: Address, ty: Type, to: &[Reg], always: bool, tag: Option<&str>) {
        let place = memory::place(&self.operands, at, ty, to.len(), false);
        if let [one] = to {
            let value = narrow(ty, *one, place);
            self.assign(*one, &value, always, tag);
            return;
        }
        let (vector, load) = self.vector_load(at, ty, to.len(), tag);
        self.line(load);
        self.parts(&vector, ty, to, always);
    }

    /// A vector's name, and its declaration with the load.
    fn vector_load(
        &mut self,
        at: Address,
        ty: Type,
        n: usize,
        tag: Option<&str>,
    ) -> (String, String) {
        self.vectors += 1;
        let vector = format!("{}{}", self.vector, self.vectors);
        let place = memory::place(&self.operands, at, ty, n, false);
        let of = memory::vector(ty, n);
        let tag = tag.map_or(String::new(), |t| format!(" // {t}"));
        let load = format!("{of} {vector} = {place};{tag}");
        (vector, load)
    }

    /// The parts of a vector to their registers.
    fn parts(&mut self, vector: &str, ty: Type, to: &[Reg], always: bool) {
        for (i, r) in to.iter().enumerate() {
            let part = narrow(ty, *r, format!("{vector}.s{i}"));
            self.assign(*r, &part, always, None);
        }
    }

    fn store(&mut self, at: Address, ty: Type, from: &[Reg], tag: Option<&str>) {
        let place = memory::place(&self.operands, at, ty, from.len(), true);
        let parts: Vec<_> = from.iter().map(|&r| self.operands.register(r)).collect();
        let of = memory::vector(ty, from.len());
        let place = self.in_window(at, &place);
        let tag = tag.map_or(String::new(), |t| format!(" // {t}"));
        match &parts[..] {
            [one] if bits(ty, from[0]) => self.line(format_args!("{place} = ({of}){one};{tag}")),
            [one] => self.line(format_args!("{place} = {one};{tag}")),
            _ => {
                let parts = parts.join(", ");
                self.line(format_args!("{place} = ({of})({parts});{tag}"));
            }
        }
    }

    /// `reg = value`, with its declaration if this is where it is declared.
    fn assign(&mut self, reg: Reg, value: &str, always: bool, tag: Option<&str>) {
        let (name, value) = (self.operands.register(reg), bare(value));
        let ty = self.operands.declared(reg);
        let tag = tag.map_or(String::new(), |t| format!(" // {t}"));
        let first = self.declarations.with_value(reg);
        let first = first.filter(|_| always && self.declared.insert(reg));
        match first {
            Some(true) if ty.ends_with('*') => {
                self.line(format_args!("{ty}const {name} = {value};{tag}"));
            }
            Some(true) => self.line(format_args!("const {ty}{name} = {value};{tag}")),
            Some(false) => self.line(format_args!("{ty}{name} = {value};{tag}")),
            None => self.line(format_args!("{name} = {value};{tag}")),
        }
    }
}

/// Whether a register of another width or kind than `ty` holds its bits.
fn bits(ty: Type, reg: Reg) -> bool {
    matches!(
        (ty.bytes(), reg.class),
        (1, _) | (2, Class::B32) | (4, Class::B64)
    )
}

/// What is loaded as the value of a register: small integers without sign, others with theirs.
fn narrow(ty: Type, reg: Reg, loaded: String) -> String {
    match (ty, reg.class) {
        (Type::S8, Class::B16) => format!("(ushort)(short){loaded}"),
        (Type::S8, Class::B32) => format!("(uint)(int){loaded}"),
        _ if bits(ty, reg) => {
            let wide = match reg.class {
                Class::B16 => "ushort",
                Class::B64 => "ulong",
                _ => "uint",
            };
            format!("({wide}){loaded}")
        }
        _ => loaded,
    }
}

/// A register that a literal is moved to, without a guard or a tag.
fn literal(node: &Node) -> Option<(Reg, Src, Type)> {
    match node {
        Node::Inst(Statement {
            inst: Inst::Move { ty, to, from },
            guard: None,
            tag: None,
        }) if !matches!(from, Src::Reg(_)) => Some((*to, *from, *ty)),
        _ => None,
    }
}
