//! The kernel layer refuses what used to be traps of a builder with hand-written addresses: each trap is an error here, when the kernel is
//! built, when it is proven or when it is launched.

mod adversary;
mod alike;
mod beyond;
mod build;
mod by_block;
mod convert;
#[path = "../common/generated.rs"]
mod generated;
mod held;
mod hopper;
mod hosts;
mod indices;
mod launch;
mod lines;
mod misuse;
mod named;
mod natural;
mod owned;
mod proof_picture;
mod prove;
mod quotients;
mod remote;
mod sealed;
mod shared_by_counter;
mod sparse;
mod staged_vectors;
mod stated;
mod tiles;

use std::error::Error;

use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::Predicate;
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{Layout, Swizzled};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;
/// What the body of a branch or loop gives.
type Done = std::result::Result<(), ViewError>;

const ARCH: Arch = Arch(80);

fn layout(text: &str) -> Layout {
    Layout::parse(text).expect(text)
}

fn swizzled(text: &str) -> Swizzled {
    Swizzled::parse(text).expect(text)
}

/// Adds to the values of a fragment those that another one has in the same registers, wherever they come from.
fn add(k: &mut Kernel, sums: &Fragment, other: &Fragment) -> Done {
    let mut values = other.thread_values::<f32>(k)?.into_iter();
    sums.update(k, |k, sum| match values.next() {
        Some(x) => sum.add(k, x),
        None => sum,
    })
}

/// A barrier of those threads where `p` holds.
fn barrier_when(k: &mut Kernel, p: Predicate) {
    let done = k.when(p, |k| {
        k.barrier();
        Done::Ok(())
    });
    done.expect("a barrier");
}

/// A kernel of 128 threads over vectors, with this block's 128 elements of x and of y.
fn vectors(from: Element, to: Element) -> Result<(Kernel, View, View)> {
    let mut k = Kernel::new("vectors", 128);
    let n = k.size("n", 1 << 30);
    let (x, y) = (k.input("x", from, &[n]), k.output("y", to, &[n]));
    let block = k.tiles(Axis::X, n, 128)?;
    let x = x.tile(&mut k, &[128], &[block])?;
    let y = y.tile(&mut k, &[128], &[block])?;
    Ok((k, x, y))
}

/// y = x, an element a thread.
fn copy() -> Result<Proven> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let x = x.partition(&mut k, &one, thread)?;
    let y = y.partition(&mut k, &one, thread)?;
    k.copy(&x, &y)?;
    Ok(k.build(ARCH)?)
}

/// y = x reversed in blocks of 128 through shared memory, with `between` between the write and the read.
fn through_shared(between: impl Fn(&mut Kernel)) -> Result<Kernel> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, up) = (k.thread(), layout("(128,1):(1,0)"));
    // Thread t has element 2t, and behind the middle 2t - 127.
    let across = layout("((64,2),1):((2,1),0)");
    let x = x.partition(&mut k, &up, thread)?;
    let put = tile.partition(&mut k, &up, thread)?;
    let take = tile.partition(&mut k, &across, thread)?;
    let y = y.partition(&mut k, &up, thread)?;
    k.copy(&x, &put)?;
    between(&mut k);
    k.copy(&take, &y)?;
    Ok(k)
}

fn refusal(kernel: Kernel) -> ProofError {
    match kernel.build(ARCH) {
        Err(error) => error,
        Ok(proven) => panic!("proven: {}", proven.ptx),
    }
}

/// A message without the lines of this program, which `lines` tests.
fn without_lines(message: &impl ToString) -> String {
    let message = message.to_string();
    let mut parts = message.split(" (tests/layer/");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once(')').map_or(part, |(_, rest)| rest)
    })
}
