//! First pass over a kernel: where parameters and variables lie, and which instruction each label names.
//!
//! Static shared variables follow each other, each aligned; the dynamic part starts after them, aligned to the strictest `.extern`
//! declaration. Module-level shared variables take space only in kernels that mention them, as assemblers do it.

use super::{Decoder, Result, Symbol};
use crate::ast::{KernelAst, ModuleAst, OperandAst, OperandKind, Space, Stmt, Variable};
use crate::error::ParseErrorKind as Kind;
use crate::module::Param;

/// Upper limit of shared memory that one variable layout may reach; far above any device.
const MAX_SHARED: u64 = 1 << 24;

/// Rounds `x` up to a multiple of `align`, a power of two.
fn align_up(x: u64, align: u32) -> u64 {
    x.next_multiple_of(u64::from(align.max(1)))
}

impl<'a> Decoder<'a> {
    pub(super) fn params(&mut self, k: &'a KernelAst<'a>) -> Result<(Vec<Param>, u32)> {
        let mut params = Vec::new();
        let mut at = 0u64;
        for p in &k.params {
            let size = p.size.unwrap_or(0);
            at = align_up(at, p.align);
            let offset = at as u32;
            at += size;
            if at > 32_764 {
                return Err(p.span.error(Kind::OutOfRange(
                    "more than 32764 bytes of parameters".to_owned(),
                )));
            }
            params.push(Param {
                name: p.name.to_owned(),
                ty: p.ty,
                size: size as u32,
                align: p.align,
                offset,
                is_pointer: p.is_pointer,
            });
            let symbol = Symbol::Variable {
                space: Space::Param,
                offset,
            };
            if self.scopes[0].names.insert(p.name, symbol).is_some() {
                return Err(p.span.error(Kind::Redeclared(p.name.to_owned())));
            }
        }
        Ok((params, at as u32))
    }

    /// First pass: labels to instruction numbers, shared and local variables to offsets.
    pub(super) fn lay_out(
        &mut self,
        module: &'a ModuleAst<'a>,
        k: &'a KernelAst<'a>,
    ) -> Result<()> {
        let (mut shared, mut local, mut pc) = (0u64, 0u64, 0u32);
        let mut dynamic: Vec<(usize, u32)> = Vec::new();
        let mut stack = vec![0u32];
        let place = |at: &mut u64, v: &Variable<'_>| -> Result<u32> {
            *at = align_up(*at, v.align);
            let offset = *at as u32;
            *at += v.size.unwrap_or(0);
            if *at > MAX_SHARED {
                return Err(v.span.error(Kind::OutOfRange(format!(
                    "`{}` does not fit in its memory",
                    v.name
                ))));
            }
            Ok(offset)
        };
        let mut number = 0u32;
        let mut module_dynamic = Vec::new();
        for v in &module.variables {
            let symbol = match v.space {
                Space::Shared if v.size.is_none() => {
                    module_dynamic.push((v.name, v.align));
                    Symbol::Variable {
                        space: Space::Shared,
                        offset: 0,
                    }
                }
                Space::Shared if mentions(k, v.name) => Symbol::Variable {
                    space: Space::Shared,
                    offset: place(&mut shared, v)?,
                },
                Space::Shared => continue,
                _ => {
                    number += 1;
                    Symbol::Module(number - 1)
                }
            };
            self.scopes[0].names.entry(v.name).or_insert(symbol);
        }
        for (index, stmt) in k.body.iter().enumerate() {
            match stmt {
                Stmt::Open => {
                    let parent = stack.last().copied().unwrap_or(0);
                    self.parents.push(parent);
                    stack.push(self.parents.len() as u32 - 1);
                }
                Stmt::Close => {
                    stack.pop();
                }
                Stmt::Label(name, span) => {
                    let scope = stack.last().copied().unwrap_or(0);
                    if self.labels.insert((scope, name), pc).is_some() {
                        return Err(span.error(Kind::Redeclared((*name).to_owned())));
                    }
                }
                Stmt::Instr(_) => pc += 1,
                Stmt::Variable(v) => match (v.space, v.size) {
                    (Space::Shared, None) => dynamic.push((index, v.align)),
                    (Space::Shared, Some(_)) => {
                        let offset = place(&mut shared, v)?;
                        self.placed.insert(index, offset);
                    }
                    (Space::Local, Some(_)) => {
                        let offset = place(&mut local, v)?;
                        self.placed.insert(index, offset);
                    }
                    _ => {
                        let what =
                            format!("`{}`: this space is not supported inside a kernel", v.name);
                        return Err(v.span.error(Kind::Unsupported(what)));
                    }
                },
                Stmt::Registers(_) | Stmt::BranchTargets(..) => {}
            }
        }
        let align = dynamic
            .iter()
            .map(|d| d.1)
            .chain(module_dynamic.iter().map(|d| d.1))
            .max()
            .unwrap_or(16);
        let start = align_up(shared, align) as u32;
        for (index, _) in dynamic {
            self.placed.insert(index, start);
        }
        for (name, _) in module_dynamic {
            self.scopes[0].names.insert(
                name,
                Symbol::Variable {
                    space: Space::Shared,
                    offset: start,
                },
            );
        }
        self.program.shared_static = shared as u32;
        self.program.shared_dynamic = start;
        self.program.local_bytes = align_up(local, 16) as u32;
        Ok(())
    }

    pub(super) fn declare(&mut self, index: usize, v: &'a Variable<'a>) -> Result<()> {
        let offset = self.placed.get(&index).copied().unwrap_or(0);
        let symbol = Symbol::Variable {
            space: v.space,
            offset,
        };
        let scope = self
            .scopes
            .last_mut()
            .expect("the kernel's scope is never popped");
        match scope.names.insert(v.name, symbol) {
            // `.extern .shared` may be declared at module level and again here.
            Some(Symbol::Variable {
                space: Space::Shared,
                ..
            }) if v.is_extern => Ok(()),
            Some(_) => Err(v.span.error(Kind::Redeclared(v.name.to_owned()))),
            None => Ok(()),
        }
    }
}

/// Whether any operand of `k` names `name`.
fn mentions(k: &KernelAst<'_>, name: &str) -> bool {
    fn operand(o: &OperandAst<'_>, name: &str) -> bool {
        match &o.kind {
            OperandKind::Name { name: n, .. } | OperandKind::Not(n) => *n == name,
            OperandKind::Address { base, coords, .. } => {
                *base == Some(name) || coords.iter().any(|c| operand(c, name))
            }
            OperandKind::Vector(v) | OperandKind::List(v) => v.iter().any(|c| operand(c, name)),
            OperandKind::Pair(a, b) => operand(a, name) || operand(b, name),
            _ => false,
        }
    }
    k.body
        .iter()
        .any(|s| matches!(s, Stmt::Instr(i) if i.operands.iter().any(|o| operand(o, name))))
}
