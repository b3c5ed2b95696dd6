//! The statements of a kernel: regions as braces, instructions as assignments.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::OpenClError;
use super::anew::{Anew, is_straight, mentioned, words};
use super::expression::{Operands, bare, constant};
use super::instruction::{Missing, value};
use super::memory;
use super::names::Names;
use super::order::{Held, Order, holds, multiplies};
use super::pointers::Pointers;
use super::scopes::Declarations;
use crate::ir::{
    Address, Class, Entry, If, Inst, Loop, LoopEnd, Node, Pred, Reg, Src, Statement, Type,
};

/// The longest value that stands where it is used.
const INLINED: usize = 48;

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
    /// In a loop that multiplies: what is held back.
    order: Option<Order>,
    /// The numbers of values that `KEEP` was used with.
    arities: BTreeSet<usize>,
    /// What threads do not share, before the first loop of products; and whether that loop has ended.
    anew: Anew,
    multiplied: bool,
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
        let vector = names.free("v");
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
            order: None,
            arities: BTreeSet::new(),
            anew: Anew::default(),
            multiplied: false,
            apart: 0,
        }
    }

    /// The text, and the numbers of values that it keeps in order.
    pub(super) fn text(mut self) -> Result<(String, BTreeSet<usize>), OpenClError> {
        self.declare();
        let nodes = &self.entry.nodes;
        match self.nodes(nodes) {
            Ok(()) => Ok((self.out, self.arities)),
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
    fn turn(&mut self, nodes: &[Node]) -> Result<(), Missing> {
        let outer = self.order.take();
        let multiplies = multiplies(nodes);
        self.order = multiplies.then(Order::default);
        self.depth += 1;
        if multiplies && self.multiplied {
            self.declare_anew(nodes);
        } else if multiplies && is_straight(nodes) {
            self.keep_pointers(nodes);
        }
        self.nodes(nodes)?;
        self.release(&[]);
        self.depth -= 1;
        if let Some(order) = std::mem::replace(&mut self.order, outer) {
            self.arities.extend(order.arities);
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
            self.arities.insert(1);
        }
        for line in lines {
            self.line(line);
        }
    }

    /// Keeps the pointers that a loop advances in their registers: compilers would advance each sum of them instead.
    fn keep_pointers(&mut self, body: &[Node]) {
        let results = body.iter().filter_map(|node| match node {
            Node::Inst(s) => Some(s.inst.results()),
            _ => None,
        });
        let advanced: BTreeSet<Reg> = results.flatten().collect();
        for r in advanced {
            if self.operands.is_pointer(r) && !self.declarations.is_constant(r) {
                self.arities.insert(1);
                let name = self.operands.register(r);
                self.line(format_args!("KEEP1({name});"));
            }
        }
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
                base: at.base(),
                ty: *ty,
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
        for held in &due {
            self.line(&held.load);
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
                Node::Inst(s) if self.order.is_some() && holds(s) => self.hold(s),
                Node::Inst(s) => {
                    self.statement(s)?;
                    if self.multiplied && self.order.is_some() && matches!(s.inst, Inst::Barrier) {
                        blocks += self.block(rest);
                    }
                }
                Node::Comment(text) => self.line(format_args!("// {text}")),
                Node::Assume(stated) => self.line(format_args!("// {}", stated.comment())),
                Node::If(branch) => self.branches(branch)?,
                Node::Roles(_) => {
                    return super::instruction::missing("roles of a block");
                }
                Node::Loop(turns) => {
                    self.turns(turns)?;
                    if self.depth == 1 && multiplies(&turns.body) {
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

    fn turns(&mut self, l: &Loop) -> Result<(), Missing> {
        let start = self.operands.source(l.start, Type::U32);
        self.assign(l.counter, &start, true, None);
        self.nodes(&l.entry)?;
        let counter = self.operands.register(l.counter);
        let step = constant(l.step, false);
        let advance = format!("{counter} += {step}");
        match l.end {
            LoopEnd::Below { limit, .. } => {
                let limit = self.operands.source(limit, Type::U32);
                self.line(format_args!("for (; {counter} < {limit}; {advance}) {{"));
                self.turn(&l.body)?;
                self.line("}");
            }
            LoopEnd::While { again } => {
                self.line("do {");
                self.turn(&l.body)?;
                self.line(format_args!("    {advance};"));
                let again = self.operands.register(again);
                self.line(format_args!("}} while ({again});"));
            }
            LoopEnd::Left => {
                self.line(format_args!("for (;; {advance}) {{"));
                self.turn(&l.body)?;
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
            Inst::Store { at, ty, from } => {
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
        integer
            && matches!(to.class, Class::B32 | Class::B64 | Class::Pred)
            && text.len() <= INLINED
            && !names.is_named(to)
            && self.declarations.is_used_once(to)
            && inst.sources().iter().all(constant)
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
