//! What a launch computes from its sizes, as formulas: a host program in another language computes the same.
//!
//! ```text
//! k.tiles(Axis::X, n, 512)      grid x = (n + 511) / 512
//! k.input("x", F32, &[n, m])    bytes of x = n · m · 4
//! ```

use crate::index::{Expr, Node, Pool};
use crate::ir::{self, Arrangement, Cmp, Entry, Extent, ParamKind, Stride, checked};
use crate::proven::most_blocks;

/// A number that a launch computes from its sizes.
///
/// ```
/// use layout_codegen::Formula;
///
/// // (n + 511) / 512
/// let n = Formula::Size("n".to_owned());
/// let blocks = Formula::Quotient(Box::new(Formula::Sum(vec![n, Formula::Number(511)])), 512);
/// assert_eq!(blocks.value(&|_| 1000), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Formula {
    /// A constant.
    Number(i64),
    /// A size of the launch, by the name of its parameter.
    Size(String),
    /// A sum, which fits 64 bits.
    Sum(Vec<Self>),
    /// A constant times a value, which fits 64 bits.
    Scaled(i64, Box<Self>),
    /// A product of values that are never negative; 2⁶³ − 1 if it is more.
    Product(Vec<Self>),
    /// The quotient of a value that is never negative, rounded down.
    Quotient(Box<Self>, i64),
    /// The larger of two.
    Larger(Box<[Self; 2]>),
    /// `(x << shift) & mask` of a value that is never negative; `(x >> -shift) & mask` for a negative shift.
    Bits {
        /// The value.
        x: Box<Self>,
        /// How far it moves to the left.
        shift: i32,
        /// The bits that are kept.
        mask: i64,
    },
    /// Exclusive or.
    Xor(Vec<Self>),
}

impl Formula {
    /// Its value for these sizes.
    pub fn value(&self, size: &impl Fn(&str) -> u64) -> i64 {
        let of = |x: &Self| x.value(size);
        match self {
            Self::Number(n) => *n,
            Self::Size(name) => i64::try_from(size(name)).unwrap_or(i64::MAX),
            Self::Sum(terms) => terms.iter().map(of).fold(0, i64::saturating_add),
            Self::Scaled(factor, x) => of(x).saturating_mul(*factor),
            Self::Product(factors) => factors.iter().map(of).fold(1, i64::saturating_mul),
            Self::Quotient(x, d) => of(x) / d,
            Self::Larger(both) => of(&both[0]).max(of(&both[1])),
            Self::Bits { x, shift, mask } if *shift >= 0 => (of(x) << shift) & mask,
            Self::Bits { x, shift, mask } => (of(x) >> -shift) & mask,
            Self::Xor(items) => items.iter().map(of).fold(0, |a, b| a ^ b),
        }
    }

    /// The quotient, rounded up, and that times the divisor.
    fn rounded_up(self, d: i64) -> [Self; 2] {
        if d == 1 {
            return [self.clone(), self];
        }
        let more = Self::Sum(vec![self, Self::Number(d - 1)]);
        let quotient = Self::Quotient(Box::new(more), d);
        [quotient.clone(), Self::Scaled(d, Box::new(quotient))]
    }
}

/// The contract of every launch of a kernel, as formulas of its sizes: what [`Proven::grid`](crate::Proven::grid) and
/// [`Proven::buffers`](crate::Proven::buffers) compute.
///
/// ```
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_codegen::{Arch, Formula};
///
/// let mut k = Kernel::new("zeros", 128);
/// let n = k.size("n", 1 << 30);
/// let y = k.output("y", Element::F32, &[n]);
/// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
/// let at = k.linear(&[(128, block), (1, thread)], 0);
/// y.store(&mut k, &[at], layout_codegen::value::F32::from(0.0))?;
/// let formulas = k.build(Arch(80))?.formulas().expect("no tensor maps");
/// assert_eq!(formulas.grid[0].value(&|_| 1000), 8);
/// assert_eq!(formulas.bytes[0].1.value(&|_| 1000), 4000);
/// assert_eq!((formulas.sizes[0].name.as_str(), formulas.sizes[0].most), ("n", 1 << 30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Formulas {
    /// The ranges of the sizes, in the order of the parameters.
    pub sizes: Vec<Range>,
    /// What the author states of the sizes.
    pub stated: Vec<Stated>,
    /// Blocks along x, y, z; nothing is launched if one is 0.
    pub grid: [Formula; 3],
    /// The most blocks along x, y, z.
    pub most_blocks: [u64; 3],
    /// The bytes of each buffer, by the name of its parameter.
    pub bytes: Vec<(String, Formula)>,
}

/// The values of a size that a kernel was proven for.
///
/// ```
/// let n = layout_codegen::Range { name: "n".to_owned(), most: 100, multiple: 4 };
/// assert!(96 <= n.most && 96 % n.multiple == 0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The name of its parameter.
    pub name: String,
    /// The greatest value.
    pub most: u64,
    /// What it is a multiple of.
    pub multiple: u64,
}

/// A condition on the sizes that the author of a kernel states, and that a launch checks.
///
/// ```
/// use layout_codegen::ir::Cmp;
/// use layout_codegen::{Formula, Stated};
///
/// let (a, b) = (Formula::Size("n".to_owned()), Formula::Number(1));
/// let stated = Stated { a, cmp: Cmp::Ge, b, condition: "n >= 1".to_owned() };
/// assert!(stated.a.value(&|_| 3) >= stated.b.value(&|_| 3));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Stated {
    /// The first value.
    pub a: Formula,
    /// How the two compare.
    pub cmp: Cmp,
    /// The second value.
    pub b: Formula,
    /// The condition as text.
    pub condition: String,
}

impl Formulas {
    /// The formulas of an entry. `None` for an entry with tensor maps, and where a number may not fit 64 bits.
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        if !entry.tensor_maps.is_empty() {
            return None;
        }
        let pool = &entry.pool;
        let sizes = entry.params.iter().filter(|p| p.kind == ParamKind::U32);
        let sizes = sizes.map(|p| Range {
            name: p.name.clone(),
            most: p.most.unwrap_or(u32::MAX.into()).min(u32::MAX.into()),
            multiple: p.multiple,
        });
        let stated = checked(&entry.nodes, &entry.params, pool).map(|stated| {
            Some(Stated {
                a: formula(pool, stated.a)?,
                cmp: stated.cmp,
                b: formula(pool, stated.b)?,
                condition: stated.condition(pool),
            })
        });
        let mut grid = entry
            .cluster
            .map(|of_cluster| Formula::Number(of_cluster.into()));
        for &(axis, count) in &entry.whole_axes {
            let of_cluster = u64::from(entry.cluster[axis as usize]);
            grid[axis as usize] = Formula::Number(count.next_multiple_of(of_cluster) as i64);
        }
        for t in &entry.tile_axes {
            let [blocks, _] = extent(pool, t.extent)?.rounded_up(t.tile);
            let axis = t.axis as usize;
            [_, grid[axis]] = blocks.rounded_up(entry.cluster[axis].into());
        }
        let global = |b: &&ir::Buffer| matches!(b.arrangement, Arrangement::Global { .. });
        let buffers = entry.buffers.iter().filter(global);
        let bytes = buffers.map(|b| Some((b.name.clone(), bytes(pool, b, &grid)?)));
        Some(Self {
            sizes: sizes.collect(),
            stated: stated.collect::<Option<_>>()?,
            most_blocks: most_blocks(entry),
            bytes: bytes.collect::<Option<_>>()?,
            grid,
        })
    }
}

/// The bytes of a buffer: those of its elements. Where rows are farther apart than they are long, the gaps count too, even of an empty array.
fn bytes(pool: &Pool, b: &ir::Buffer, grid: &[Formula; 3]) -> Option<Formula> {
    let extents = b.extents.iter().map(|e| match e {
        Extent::Fixed(n) => Some(Formula::Number(*n)),
        Extent::Value(e) | Extent::Padded { whole: e, .. } => extent(pool, *e),
        Extent::Blocks(axis) => Some(grid[*axis as usize].clone()),
    });
    let mut packed = extents.collect::<Option<Vec<_>>>()?;
    let element = Formula::Number(b.bytes);
    let apart = match (&b.arrangement, packed.first()) {
        (Arrangement::Global { strides, .. }, Some(outermost)) => match strides.first() {
            Some(Stride::Value(e)) => {
                let rows = [outermost.clone(), extent(pool, *e)?, element.clone()];
                Some(product(rows.to_vec()))
            }
            _ => None,
        },
        _ => None,
    };
    packed.push(element);
    let packed = product(packed);
    Some(match apart {
        Some(apart) if apart != packed => Formula::Larger(Box::new([packed, apart])),
        _ => packed,
    })
}

/// A product, of which no factor is a product.
fn product(factors: Vec<Formula>) -> Formula {
    let factors = factors.into_iter().flat_map(|f| match f {
        Formula::Product(inner) => inner,
        f => vec![f],
    });
    Formula::Product(factors.collect())
}

/// A number of elements: none where the expression is negative.
fn extent(pool: &Pool, e: Expr) -> Option<Formula> {
    let found = formula(pool, e)?;
    Some(if pool.facts(e).nonnegative() {
        found
    } else {
        Formula::Larger(Box::new([found, Formula::Number(0)]))
    })
}

/// The formula of an index expression. `None` if it may not fit 64 bits, or has something other than sizes in it.
fn formula(pool: &Pool, e: Expr) -> Option<Formula> {
    let facts = pool.facts(e);
    let fits = |x: i128| x.unsigned_abs() < 1 << 62;
    let of = |e: &Expr| formula(pool, *e);
    let some = |e: &Expr| Some(Box::new(of(e)?));
    let node = pool.node(e);
    let is_size = matches!(node, Node::Var { .. } | Node::Const(_));
    if !(is_size || fits(facts.lo) && fits(facts.hi)) {
        return None;
    }
    let parts = |items: &[Expr]| items.iter().map(of).collect::<Option<Vec<_>>>();
    Some(match node {
        Node::Const(c) => Formula::Number(*c),
        Node::Var { name } => Formula::Size(name.clone()),
        Node::Sum(terms, k) => {
            let term = |(c, x): &(i64, Expr)| {
                Some(if *c == 1 {
                    of(x)?
                } else {
                    Formula::Scaled(*c, some(x)?)
                })
            };
            let mut all = terms.iter().map(term).collect::<Option<Vec<_>>>()?;
            if *k != 0 {
                all.push(Formula::Number(*k));
            }
            match <[_; 1]>::try_from(all) {
                Ok([one]) => one,
                Err(all) => Formula::Sum(all),
            }
        }
        // A value that is never negative has no more bits than its facts.
        Node::Field { x, shift, mask } if pool.facts(*x).nonnegative() => Formula::Bits {
            x: some(x)?,
            shift: *shift,
            mask: (*mask & i64::MAX as u64) as i64,
        },
        Node::Xor(items) => Formula::Xor(parts(items)?),
        Node::Mul(a, b) if [a, b].iter().all(|x| pool.facts(**x).nonnegative()) => {
            product(parts(&[*a, *b])?)
        }
        Node::Div(x, d) => Formula::Quotient(some(x)?, *d),
        Node::Pin(x) => of(x)?,
        Node::Field { .. } | Node::Mul(..) | Node::DivFast { .. } => return None,
    })
}
