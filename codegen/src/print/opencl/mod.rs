//! OpenCL C text of a kernel: the second printer of the representation that the prover reads.
//!
//! ```text
//! If                 if (p) { then } else { otherwise }
//! Loop, Below        for (; counter < limit; counter += step) { body }
//! Loop, While        do { body; counter += step; } while (again);
//! Leave, Exit        if (p) break;     if (p) return;
//! address            global: a pointer plus bytes           shared: a number of bytes from the start of the one `__local` array
//! ```
//!
//! Three things differ from PTX. Addresses of global memory become pointers again, so that the compiler knows their address space and that
//! parameters do not alias (see `pointers`). Shared memory is one array, and its addresses are distances from it. There are no warps: a barrier
//! of a warp becomes one of the work-group, which is stronger, where all threads of the block reach it.
//!
//! What OpenCL C cannot say (tensor cores, asynchronous copies, shuffles of a warp) is one [`OpenClError`]. Everything else is printed
//! literally: what was proven of the representation holds of the text.
//!
//! ```
//! use layout_codegen::Arch;
//! use layout_codegen::ir::{Axis, Element, Kernel};
//! use layout_codegen::print::opencl;
//! use layout_core::Layout;
//!
//! let mut k = Kernel::new("copy", 128);
//! let n = k.size("n", 1 << 30);
//! let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
//! let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
//! let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
//! let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
//! k.copy(&x, &y)?;
//! let copy = k.build(Arch(80))?;
//! let text = opencl::program(&[copy.entry().clone()], &[])?;
//! assert!(text.contains("void copy(const uint n, const __global float *restrict x, __global float *restrict y)"), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anew;
mod body;
mod error;
mod expression;
mod instruction;
mod memory;
mod names;
mod order;
mod pointers;
mod scopes;
mod windows;

use std::fmt::Write as _;

pub use error::OpenClError;

use self::body::{Body, Macros};
use self::names::Names;
use self::pointers::{Pointers, written};
use self::scopes::Declarations;
use crate::ir::{Class, Entry, Inst, Node, Param, ParamKind, Place, Space, Type, without_lines};

/// The most local memory of a work-group, in bytes: what GCN and every later chip of AMD has.
pub const LOCAL_LIMIT: u64 = 65_536;

/// The text of a program of several kernels, which begins with the comment `about` and the comments of the kernels.
///
/// # Errors
///
/// [`OpenClError`] for what OpenCL C has no form for, and for more than [`LOCAL_LIMIT`] bytes of local memory.
pub fn program(kernels: &[Entry], about: &[String]) -> Result<String, OpenClError> {
    let mut out = String::new();
    for line in about.iter().flat_map(|text| text.lines()) {
        let _ = writeln!(out, "// {line}");
    }
    for line in kernels.iter().flat_map(|k| &k.comments) {
        let _ = writeln!(out, "// {line}");
    }
    if kernels.iter().any(has_doubles) {
        out.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    out.push_str("#pragma OPENCL FP_CONTRACT OFF\n");
    let mut text = String::new();
    let mut all = Macros::default();
    for k in kernels {
        text.push('\n');
        let k = Entry {
            nodes: without_lines(&k.nodes),
            ..k.clone()
        };
        let macros = kernel(&mut text, &k)?;
        all.arities.extend(macros.arities);
        all.windows |= macros.windows;
        all.four |= macros.four;
    }
    out.push_str(&order::macros(&all.arities));
    if all.windows {
        out.push_str(windows::MACROS);
    }
    if all.four {
        out.push_str(windows::FOUR);
    }
    out.push_str(&text);
    Ok(out)
}

fn has_doubles(k: &Entry) -> bool {
    k.registers.get(&Class::F64).is_some_and(|&n| n > 0)
        || k.params.iter().any(|p| p.kind == ParamKind::F64)
}

/// Adds a kernel's text; returns the macros in it.
fn kernel(out: &mut String, k: &Entry) -> Result<Macros, OpenClError> {
    if names::is_reserved(&k.name) {
        return Err(OpenClError {
            kernel: k.name.clone(),
            what: format!(
                "the name `{}`, which OpenCL C reserves or the text uses",
                k.name
            ),
            instead: "take another name for it",
        });
    }
    let mut names = Names::of(k);
    let pointers = Pointers::of(k);
    let declarations = Declarations::of(k);
    if let Some(shared) = k.shared
        && shared.bytes > LOCAL_LIMIT
    {
        return Err(OpenClError {
            kernel: k.name.clone(),
            what: format!("{} bytes of local memory", shared.bytes),
            instead: "a work-group has at most 65536: take a smaller tile",
        });
    }
    let parameters: Vec<String> = k.params.iter().map(|p| parameter(k, p, &names)).collect();
    let [x, y, z] = k.block;
    let local = k.shared.map_or(0, |s| s.bytes);
    let _ = writeln!(
        out,
        "// {}: work-groups of ({x}, {y}, {z}), {local} bytes of local memory",
        k.name
    );
    let body = Body::new(k, &mut names, &pointers, &declarations);
    let (text, macros) = body.text()?;
    let four = if macros.four { " FOUR_WAVEFRONTS" } else { "" };
    let _ = writeln!(
        out,
        "__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))){four}"
    );
    let _ = writeln!(out, "void {}({})\n{{", k.name, parameters.join(", "));
    if let Some(shared) = k.shared {
        // The widest access is 16 bytes; the array is at byte 0 of the kernel's own addresses.
        let _ = writeln!(
            out,
            "    __local uchar smem[{}] __attribute__((aligned(16)));",
            shared.bytes
        );
    }
    out.push_str(&text);
    out.push_str("}\n");
    Ok(macros)
}

/// A parameter's declaration.
fn parameter(k: &Entry, p: &Param, names: &Names) -> String {
    let name = names.parameter(&p.name);
    match p.kind {
        ParamKind::Pointer => {
            let (start, element) = if written(k, &p.name) {
                ("", element(k, &p.name))
            } else {
                ("const ", element(k, &p.name))
            };
            format!("{start}__global {element} *restrict {name}")
        }
        ParamKind::U32 => format!("const uint {name}"),
        ParamKind::U64 => format!("const ulong {name}"),
        ParamKind::S32 => format!("const int {name}"),
        ParamKind::F32 => format!("const float {name}"),
        ParamKind::F64 => format!("const double {name}"),
        // Of a kernel that is refused.
        ParamKind::TensorMap => format!("const void *{name}"),
    }
}

/// The type of a buffer's elements: that of its first access.
fn element(k: &Entry, parameter: &str) -> &'static str {
    let accessed = first_access(k, &k.nodes, parameter);
    accessed.map_or("uchar", memory::scalar)
}

fn first_access(k: &Entry, nodes: &[Node], parameter: &str) -> Option<Type> {
    nodes.iter().find_map(|node| match node {
        Node::Inst(s) => match &s.inst {
            Inst::Load { at, ty, .. } | Inst::Store { at, ty, .. }
                if at.space() == Space::Global && is_in(k, at.place(), parameter) =>
            {
                Some(*ty)
            }
            _ => None,
        },
        Node::If(b) => {
            first_access(k, &b.then, parameter).or_else(|| first_access(k, &b.otherwise, parameter))
        }
        Node::Loop(l) => {
            first_access(k, &l.entry, parameter).or_else(|| first_access(k, &l.body, parameter))
        }
        Node::Roles(roles) => roles
            .iter()
            .find_map(|role| first_access(k, &role.body, parameter)),
        Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => None,
    })
}

/// Whether a place may be in the buffer of a parameter.
fn is_in(k: &Entry, place: u32, parameter: &str) -> bool {
    match k.places.get(place as usize) {
        Some(Place::Element { buffer, .. }) => k.buffers[*buffer].name == parameter,
        Some(Place::Either {
            then, otherwise, ..
        }) => is_in(k, *then, parameter) || is_in(k, *otherwise, parameter),
        None => false,
    }
}
