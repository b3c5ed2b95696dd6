//! Random programs: kernels as people write them, of random extents and layouts, with random control around.

use tilewright::codegen::ir::{Cmp, Element, Shuffle};
use tilewright::codegen::view::Combine;

use crate::expressions::{self, Around};
use crate::layouts;
use crate::program::{
    Blocks, By, Count, Float, FloatOp, Global, Int, IntOp, Ix, Memory, Pred, Program, Ring, Scalar,
    Share, Shared, Size, Stmt, Tile,
};
use crate::random::Random;

/// A program in the making.
pub(crate) struct Maker {
    pub(crate) r: Random,
    pub(crate) p: Program,
    names: usize,
}

type Family = (&'static str, fn(&mut Maker));

const FAMILIES: [Family; 40] = [
    ("map", Maker::map),
    ("convert", Maker::convert),
    ("shared", Maker::exchange),
    ("rounds", Maker::rounds),
    ("ping-pong", Maker::ping_pong),
    ("parity", Maker::parity),
    ("rows", Maker::rows),
    ("async", Maker::asynchronous),
    ("ring", Maker::ring),
    ("in place", Maker::in_place),
    ("product", Maker::product),
    ("split", Maker::split),
    ("exit", Maker::exit),
    ("one block", Maker::one_block),
    ("uniform", Maker::uniform),
    ("shuffles", Maker::shuffles),
    ("scan", Maker::scan),
    ("transpose", Maker::transpose),
    ("halo", Maker::halo),
    ("neighbours", Maker::neighbours),
    ("search", Maker::search),
    ("grid-stride", Maker::strided),
    ("heads", Maker::heads),
    ("tiled copies", Maker::tiled_copies),
    ("derived", Maker::derived),
    ("values", Maker::taken),
    ("fragments", Maker::fragments),
    ("words", Maker::words),
    ("unpack", Maker::unpack),
    ("row sums", Maker::row_sums),
    ("weights", Maker::weights),
    ("reduced", Maker::reduced),
    ("rings", Maker::rings),
    ("gather", Maker::gather),
    ("row lengths", Maker::lengths),
    ("scatter", Maker::scatter),
    ("histogram", Maker::histogram),
    ("append", Maker::append),
    ("by data", Maker::by_data),
    ("typed", Maker::typed),
];

/// Types that fragments become.
pub(crate) const ELEMENTS: [Element; 8] = [
    Element::F32,
    Element::F16,
    Element::Bf16,
    Element::F64,
    Element::S8,
    Element::S32,
    Element::E4m3,
    Element::E5m2,
];

/// A random program.
pub(crate) fn program(r: &mut Random) -> Program {
    let (family, write) = r.pick(&FAMILIES);
    let any = [
        1, 2, 3, 4, 8, 12, 16, 24, 31, 32, 32, 32, 33, 48, 64, 64, 64, 65, 96, 100, 128,
    ];
    let threads = r.pick(&any);
    let mut maker = Maker {
        r: r.clone(),
        p: Program {
            family,
            threads,
            sizes: Vec::new(),
            scalars: Vec::new(),
            globals: Vec::new(),
            shared: Vec::new(),
            resident: None,
            lines: false,
            axes: Vec::new(),
            body: Vec::new(),
        },
        names: 0,
    };
    for _ in 0..maker.r.below(3) {
        let kind = maker
            .r
            .pick(&[Scalar::U32, Scalar::S32, Scalar::S32, Scalar::F32]);
        maker.p.scalars.push(kind);
    }
    write(&mut maker);
    for _ in 0..maker.r.pick(&[0, 0, 1, 1, 2, 3]) {
        maker.decorate();
    }
    *r = maker.r;
    maker.p
}

pub(crate) fn zero() -> Ix {
    Ix::Const(0)
}

pub(crate) fn added(to: Float) -> Float {
    Float::Binary(FloatOp::Add, Box::new([Float::It, to]))
}

pub(crate) fn sum(a: Ix, b: Ix) -> Ix {
    Ix::Add(Box::new([a, b]))
}

impl Maker {
    pub(crate) fn t(&self) -> i64 {
        self.p.threads.into()
    }

    /// Blocks of a power of two of threads.
    pub(crate) fn power(&mut self, of: &[u32]) {
        self.p.threads = self.r.pick(of);
    }

    pub(crate) fn size(&mut self, counts: bool) -> Ix {
        let most = if counts {
            self.r.pick(&[3, 10, 100, 1 << 20])
        } else {
            self.r
                .pick(&[100, 1000, 1 << 20, 1 << 30, 1 << 31, (1 << 32) - 1])
        };
        self.p.sizes.push(Size { most, counts });
        Ix::Size(self.p.sizes.len() - 1)
    }

    pub(crate) fn extent(&mut self) -> Ix {
        let most = self.r.pick(&[1000, 1 << 20, 1 << 20, 1 << 30]);
        self.p.sizes.push(Size {
            most,
            counts: false,
        });
        Ix::Size(self.p.sizes.len() - 1)
    }

    pub(crate) fn global(&mut self, element: Element, extents: &[Ix], output: bool) -> Memory {
        self.p.globals.push(Global {
            element,
            extents: extents.to_vec(),
            output,
            special: false,
            range: None,
        });
        Memory::Global(self.p.globals.len() - 1)
    }

    pub(crate) fn shared(&mut self, element: Element, layout: String) -> Memory {
        self.p.shared.push(Shared {
            element,
            tile: Tile::Given(layout),
        });
        Memory::Shared(self.p.shared.len() - 1)
    }

    pub(crate) fn axis(&mut self, extent: &Ix, tile: i64) -> Ix {
        let blocks = if self.r.chance(8) {
            Blocks::TilesFromLast
        } else {
            Blocks::Tiles
        };
        self.p.axes.push(Count {
            blocks,
            extent: extent.clone(),
            tile,
        });
        Ix::Tile(self.p.axes.len() - 1)
    }

    pub(crate) fn name(&mut self) -> usize {
        self.names += 1;
        self.names - 1
    }

    /// A share of a tile of one mode.
    pub(crate) fn flat(&mut self, of: Memory, values: i64, at: Ix) -> Share {
        let t = self.t();
        let vector = match values {
            2 | 4 if self.r.chance(40) => values,
            _ => 1,
        };
        let by = layouts::share(&mut self.r, t, values, t * values, vector);
        Share {
            of,
            part: None,
            slice: Vec::new(),
            moved: Vec::new(),
            shape: vec![t * values],
            at: vec![at],
            transposed: false,
            by: By::Layout(by, vector),
            thread: Ix::Thread,
            fill: None,
        }
    }

    /// The same share of another tile.
    pub(crate) fn like(share: &Share, of: Memory, at: Ix) -> Share {
        Share {
            of,
            at: vec![at],
            ..share.clone()
        }
    }

    /// A share of a tile of two modes, as many values as are needed.
    pub(crate) fn tile(&mut self, of: Memory, [rows, cols]: [i64; 2], at: &[Ix; 2]) -> Share {
        let t = self.t();
        let values = rows * cols / t;
        let vector = if values % 4 == 0 && cols % 4 == 0 && self.r.chance(30) {
            4
        } else {
            1
        };
        let by = layouts::share(&mut self.r, t, values, cols, vector);
        Share {
            of,
            part: None,
            slice: Vec::new(),
            moved: Vec::new(),
            shape: vec![rows, cols],
            at: at.to_vec(),
            transposed: false,
            by: By::Layout(by, vector),
            thread: Ix::Thread,
            fill: None,
        }
    }

    /// What can be named at the end of the body, outside of loops.
    pub(crate) fn around(&self) -> Around {
        let mut a = Around {
            threads: self.t(),
            sizes: self.p.sizes.len(),
            scalars: self.p.scalars.len(),
            axes: self.p.axes.len(),
            ..Around::default()
        };
        for s in &self.p.body {
            note(s, &mut a);
        }
        a
    }

    pub(crate) fn element(&mut self) -> Element {
        self.r.pick(&[
            Element::F32,
            Element::F32,
            Element::F32,
            Element::F32,
            Element::S32,
            Element::F16,
            Element::F64,
            Element::S8,
        ])
    }

    /// A vector in and a vector out, cut into tiles of `values` values a thread: x, y and this block's tile.
    pub(crate) fn vectors(&mut self, values: i64, element: Element) -> (Memory, Memory, Ix) {
        let n = self.extent();
        let x = self.global(element, std::slice::from_ref(&n), false);
        let y = self.global(element, std::slice::from_ref(&n), true);
        let tile = values * self.t();
        let at = self.axis(&n, tile);
        (x, y, at)
    }

    pub(crate) fn values(&mut self) -> i64 {
        self.r.pick(&[1, 1, 1, 2, 3, 4])
    }

    pub(crate) fn function(&mut self) -> Float {
        let a = self.around();
        let it = |r: &mut Random| match r.below(4) {
            0 => Float::It,
            1 => Float::Binary(FloatOp::Add, Box::new([Float::It, Float::Const(1.0)])),
            2 => Float::Binary(
                FloatOp::Max,
                Box::new([Float::It, expressions::float(r, &a, false, 2)]),
            ),
            _ => Float::Select(
                Box::new(expressions::pred(r, &a, false, 1)),
                Box::new([Float::It, expressions::float(r, &a, false, 1)]),
            ),
        };
        it(&mut self.r)
    }

    fn map(&mut self) {
        let values = self.values();
        if self.r.chance(30) {
            let element = self.element();
            let (x, y, at) = self.vectors(values, element);
            let from = self.flat(x, values, at.clone());
            let to = Self::like(&from, y, at);
            return self.p.body.push(Stmt::Copy(from, to));
        }
        let (x, y, at) = self.vectors(values, Element::F32);
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at.clone());
        let loaded = self.name();
        self.p.body.push(Stmt::Load(loaded, from.clone()));
        let function = self.function();
        let mapped = self.name();
        self.p.body.push(Stmt::Map(mapped, loaded, function));
        self.p.body.push(Stmt::Store(to, mapped));
        if self.r.chance(30) {
            // A second output, by another share.
            let extent = self.p.globals[0].extents.clone();
            let z = self.global(Element::F32, &extent, true);
            let other = if self.r.chance(60) {
                Self::like(&from, z, at)
            } else {
                self.flat(z, values, at)
            };
            let filled = self.name();
            let around = self.around();
            let value = expressions::float(&mut self.r, &around, true, 1);
            self.p.body.push(Stmt::Fill(filled, other.clone(), value));
            self.p.body.push(Stmt::Store(other, filled));
        }
    }

    /// A vector in another type, by way of a third one at times.
    fn convert(&mut self) {
        let values = self.r.pick(&[1, 2, 4, 4, 8]);
        let [first, second] = [(); 2].map(|()| self.r.pick(&ELEMENTS));
        let (x, y, at) = self.vectors(values, first);
        let Memory::Global(output) = y else { return };
        self.p.globals[output].element = second;
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at);
        let mut last = self.name();
        self.p.body.push(Stmt::Load(last, from));
        let between = self.r.pick(&ELEMENTS);
        for element in self.r.pick(&[vec![second], vec![between, second]]) {
            let new = self.name();
            self.p.body.push(Stmt::Convert(new, last, element));
            last = new;
        }
        self.p.body.push(Stmt::Store(to, last));
    }

    fn exchange(&mut self) {
        let (values, element) = (self.values(), self.element());
        let (x, y, at) = self.vectors(values, element);
        let n = values * self.t();
        let layout = layouts::row(&mut self.r, n);
        let s = self.shared(element, layout);
        let from = self.flat(x, values, at.clone());
        let put = if self.r.chance(70) {
            Self::like(&from, s, zero())
        } else {
            self.flat(s, values, zero())
        };
        let take = self.flat(s, values, zero());
        let to = self.flat(y, values, at);
        self.p.body.push(Stmt::Copy(from, put.clone()));
        self.p.body.push(Stmt::Barrier);
        if self.r.chance(30) {
            // Once more, round about.
            let back = self.flat(s, values, zero());
            self.p.body.push(Stmt::Copy(take.clone(), back));
            self.p.body.insert(2, Stmt::Barrier);
            self.p.body.push(Stmt::Barrier);
        }
        self.p.body.push(Stmt::Copy(take, to));
    }

    /// A loop in which a fragment goes through shared memory.
    fn rounds(&mut self) {
        let values = self.values();
        let (x, y, at) = self.vectors(values, Element::F32);
        let n = values * self.t();
        let layout = layouts::row(&mut self.r, n);
        let s = self.shared(Element::F32, layout);
        let from = self.flat(x, values, at.clone());
        let (put, to) = (Self::like(&from, s, zero()), Self::like(&from, y, at));
        let take = Share {
            thread: self.neighbour(),
            ..put.clone()
        };
        let (sums, other, new) = (self.name(), self.name(), self.name());
        let limit = self.limit();
        let step = self.r.pick(&[1, 1, 1, 2, 3]);
        self.p.body.push(Stmt::Load(sums, from));
        let body = vec![
            Stmt::Store(put, sums),
            Stmt::Barrier,
            Stmt::Load(other, take),
            Stmt::Barrier,
            Stmt::Map(new, sums, added(Float::Data(other, 0))),
            Stmt::Assign(sums, new),
        ];
        self.p.body.push(Stmt::Loop {
            start: self.r.pick(&[0, 0, 0, 1, 2]),
            step,
            limit,
            body,
        });
        self.p.body.push(Stmt::Store(to, sums));
    }

    /// The number of a thread's neighbour.
    fn neighbour(&mut self) -> Ix {
        let t = self.t();
        match self.r.below(3) {
            0 if t % 2 == 0 => Ix::Xor(Box::new([
                Ix::Thread,
                Ix::Const(self.r.pick(&[1, 1, 2, 4, 16])),
            ])),
            1 => Ix::Rem(Box::new(sum(Ix::Thread, Ix::Const(t / 2))), t),
            _ => Ix::Rem(Box::new(sum(Ix::Thread, Ix::Const(1))), t),
        }
    }

    pub(crate) fn limit(&mut self) -> Ix {
        match self.r.below(4) {
            0 => Ix::Const(self.r.pick(&[0, 1, 2, 3, 5])),
            1 => {
                let n = self.size(true);
                Ix::Rem(Box::new(n), self.r.pick(&[2, 3, 5]))
            }
            _ => self.size(true),
        }
    }

    /// Two stages of shared memory by the parity of the counter: two tiles, or two columns of one.
    fn ping_pong(&mut self) {
        let values = self.r.pick(&[1, 1, 2]);
        let (x, y, at) = self.vectors(values, Element::F32);
        let n = values * self.t();
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at);
        let parity = match self.r.below(4) {
            0..=1 => Ix::Rem(Box::new(Ix::Counter(0)), 2),
            2 => Ix::Rem(Box::new(sum(Ix::Counter(0), Ix::Const(1))), 2),
            _ => Ix::Rem(Box::new(Ix::Div(Box::new(Ix::Counter(0)), 2)), 2),
        };
        let by = match &from.by {
            By::Layout(text, _) => By::Layout(text.clone(), 1),
            by => by.clone(),
        };
        let neighbour = self.neighbour();
        let (mine, filled, theirs, carried) = (self.name(), self.name(), self.name(), self.name());
        let round = |put: Share| {
            let take = Share {
                thread: neighbour.clone(),
                ..put.clone()
            };
            let store = vec![
                Stmt::Fill(filled, put.clone(), Float::Variable(carried)),
                Stmt::Store(put, filled),
            ];
            let load = vec![
                Stmt::Load(theirs, take),
                Stmt::SetFloat(carried, Float::Data(theirs, 0)),
            ];
            [store, load]
        };
        let body = if self.r.chance(85) {
            let [a, b] = [0, 1].map(|_| {
                let layout = layouts::row(&mut self.r, n);
                let s = self.shared(Element::F32, layout);
                let share = Share {
                    by: by.clone(),
                    ..Self::like(&from, s, zero())
                };
                round(share)
            });
            let even = Pred::Index(parity, Cmp::Lt, Ix::Const(1));
            let [[put_a, take_a], [put_b, take_b]] = [a, b];
            vec![
                Stmt::WhenElse(even.clone(), put_a, put_b),
                Stmt::Barrier,
                Stmt::WhenElse(even, take_a, take_b),
            ]
        } else {
            let s = self.shared(Element::F32, format!("({n},2):(1,{n})"));
            let [put, take] = round(Share {
                of: s,
                shape: vec![n, 1],
                at: vec![zero(), parity],
                by,
                ..from.clone()
            });
            [put, vec![Stmt::Barrier], take].concat()
        };
        let limit = self.limit();
        self.p.body.push(Stmt::Load(mine, from));
        self.p
            .body
            .push(Stmt::LetFloat(carried, Float::Data(mine, 0)));
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: 1,
            limit,
            body,
        });
        let last = self.name();
        self.p
            .body
            .push(Stmt::Map(last, mine, added(Float::Variable(carried))));
        self.p.body.push(Stmt::Store(to, last));
    }

    /// A loop whose iterations alternately store and load.
    fn parity(&mut self) {
        let (x, y, at) = self.vectors(1, Element::F32);
        let n = self.t();
        let layout = layouts::row(&mut self.r, n);
        let s = self.shared(Element::F32, layout);
        let from = self.flat(x, 1, at.clone());
        let (put, to) = (Self::like(&from, s, zero()), Self::like(&from, y, at));
        let take = Share {
            thread: self.neighbour(),
            ..put.clone()
        };
        let (mine, theirs, carried) = (self.name(), self.name(), self.name());
        self.p.body.push(Stmt::Load(mine, from));
        self.p
            .body
            .push(Stmt::LetFloat(carried, Float::Data(mine, 0)));
        self.p.body.push(Stmt::Store(put.clone(), mine));
        self.p.body.push(Stmt::Barrier);
        let limit = self.limit();
        let which = expressions::derived(&mut self.r, Ix::Counter(0));
        let p = Pred::Index(
            which,
            expressions::cmp(&mut self.r),
            Ix::Const(self.r.pick(&[0, 1, 1, 2])),
        );
        let load = vec![
            Stmt::Load(theirs, take),
            Stmt::SetFloat(carried, Float::Data(theirs, 0)),
        ];
        let filled = self.name();
        let store = vec![
            Stmt::Fill(filled, put.clone(), Float::Variable(carried)),
            Stmt::Store(put, filled),
        ];
        let mut body = vec![Stmt::WhenElse(p, load, store)];
        if self.r.chance(70) {
            body.push(Stmt::Barrier);
        }
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: self.r.pick(&[1, 1, 2, 3]),
            limit,
            body,
        });
        let last = self.name();
        self.p
            .body
            .push(Stmt::Fill(last, to.clone(), Float::Variable(carried)));
        self.p.body.push(Stmt::Store(to, last));
    }

    /// The extents of a tile of two modes for the threads, powers of two.
    pub(crate) fn shape(&mut self) -> [i64; 2] {
        self.power(&[8, 16, 32, 32, 64, 64, 128]);
        let elements = self.t() * self.r.pick(&[1, 2, 4]);
        let cols = self.r.pick(&[4, 8, 16, 32]).min(elements);
        [elements / cols, cols]
    }

    fn rows(&mut self) {
        let shape = self.shape();
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let x = self.global(Element::F32, &extents, false);
        let y = self.global(Element::F32, &extents, true);
        let i = self.axis(&rows, shape[0]);
        let from = self.tile(x, shape, &[i, Ix::Counter(0)]);
        let to = Share {
            of: y,
            ..from.clone()
        };
        let steps = Ix::TilesIn(Box::new(cols), shape[1]);
        let (loaded, reduced, new) = (self.name(), self.name(), self.name());
        let mut body = vec![Stmt::Load(loaded, from)];
        let mut stored = loaded;
        if self.r.chance(40) {
            let (mode, how) = (
                self.r.below(2),
                self.r.pick(&[Combine::Add, Combine::Max, Combine::Min]),
            );
            body.push(Stmt::Reduce(reduced, loaded, mode, how));
            body.push(Stmt::Sum(new, loaded, reduced));
            if self.r.chance(70) {
                body.push(Stmt::Barrier);
            }
            stored = new;
        }
        body.push(Stmt::Store(to, stored));
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: 1,
            limit: steps,
            body,
        });
    }

    /// Shares of both sides of an asynchronous copy of a tile, and the tile's extents.
    pub(crate) fn copies(&mut self, x: Memory, at: &[Ix; 2]) -> (Share, [i64; 2]) {
        let bytes = self.r.pick(&[4, 8, 16]);
        let b = self.r.pick(&[1, 2, 4, 8]).min(self.t());
        let (a, v) = (self.t() / b, bytes / 4);
        let shape = [a, b * v * self.r.pick(&[1, 1, 2])];
        let by = By::Async(
            bytes,
            format!("({a},{b}):({b},1)"),
            format!("(1,{v}):(0,1)"),
        );
        let share = Share {
            part: None,
            of: x,
            slice: Vec::new(),
            moved: Vec::new(),
            shape: shape.to_vec(),
            at: at.to_vec(),
            transposed: false,
            by,
            thread: Ix::Thread,
            fill: None,
        };
        (share, shape)
    }

    /// Copies a matrix to shared memory asynchronously, tile by tile, and from shared memory to y.
    fn asynchronous(&mut self) {
        self.power(&[8, 16, 32, 32, 64, 64, 128]);
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let of_y = self.r.chance(15);
        let x = self.global(Element::F32, &extents, of_y);
        let y = if of_y {
            x
        } else {
            self.global(Element::F32, &extents, true)
        };
        let (mut from, shape) = self.copies(x, &[zero(), Ix::Counter(0)]);
        from.at[0] = self.axis(&rows, shape[0]);
        let row = from.at[0].clone();
        let stages = self.r.pick(&[1, 1, 2]);
        let layout = if stages == 1 {
            layouts::tile(&mut self.r, shape[0], shape[1])
        } else {
            format!("({},{}):({},1)", shape[0], shape[1] * 2, shape[1] * 2)
        };
        let s = self.shared(Element::F32, layout);
        let steps = Ix::TilesIn(Box::new(cols), shape[1]);
        let parity = if stages == 1 {
            zero()
        } else {
            Ix::Rem(Box::new(Ix::Counter(0)), 2)
        };
        let into = Share {
            of: s,
            at: vec![zero(), parity.clone()],
            ..from.clone()
        };
        let take = self.tile(s, shape, &[zero(), parity]);
        let to = if self.r.chance(70) {
            Share {
                of: y,
                at: vec![row, Ix::Counter(0)],
                ..take.clone()
            }
        } else {
            self.tile(y, shape, &[row, Ix::Counter(0)])
        };
        let mut body = vec![Stmt::Copy(from, into)];
        if self.r.chance(70) {
            body.push(Stmt::Commit);
            body.push(Stmt::Wait(0));
        } else {
            body.push(Stmt::WaitAll);
        }
        body.push(Stmt::Barrier);
        body.push(Stmt::Copy(take, to));
        if stages == 1 || self.r.chance(20) {
            body.push(Stmt::Barrier);
        }
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: 1,
            limit: steps,
            body,
        });
    }

    fn ring(&mut self) {
        self.power(&[8, 16, 32, 32, 64]);
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let x = self.global(Element::F32, &extents, false);
        let y = self.global(Element::F32, &extents, true);
        let (mut from, shape) = self.copies(x, &[zero(), Ix::Step]);
        from.at[0] = self.axis(&rows, shape[0]);
        let row = from.at[0].clone();
        let into = Share {
            of: Memory::Stage(0),
            at: vec![zero(), zero()],
            ..from.clone()
        };
        let take = self.tile(Memory::Stage(0), shape, &[zero(), zero()]);
        let (stages, steps) = (
            self.r.pick(&[2, 2, 3, 4]),
            Ix::TilesIn(Box::new(cols), shape[1]),
        );
        let ring = Ring {
            stages,
            shape,
            fill: vec![[from, into]],
        };
        let pipeline = |body| Stmt::Pipeline {
            rings: vec![ring],
            steps,
            body,
        };
        let to = Share {
            of: y,
            at: vec![row, Ix::Step],
            ..take.clone()
        };
        if self.r.chance(30) {
            self.p.body.push(pipeline(vec![Stmt::Copy(take, to)]));
            return;
        }
        // The sum of the tiles of a row.
        self.p.globals[1].extents[1] = Ix::Const(shape[1]);
        let to = Share {
            at: vec![to.at[0].clone(), zero()],
            ..to
        };
        let (sums, loaded, new) = (self.name(), self.name(), self.name());
        let body = vec![
            Stmt::Load(loaded, take),
            Stmt::Sum(new, sums, loaded),
            Stmt::Assign(sums, new),
        ];
        self.p
            .body
            .push(Stmt::Fill(sums, to.clone(), Float::Const(0.0)));
        self.p.body.push(pipeline(body));
        self.p.body.push(Stmt::Store(to, sums));
    }

    fn in_place(&mut self) {
        let values = self.values();
        let n = self.extent();
        let y = self.global(Element::F32, std::slice::from_ref(&n), true);
        let at = self.axis(&n, values * i64::from(self.p.threads));
        let from = self.flat(y, values, at.clone());
        let other = self.r.chance(40);
        let to = if other {
            self.flat(y, values, at)
        } else {
            from.clone()
        };
        let loaded = self.name();
        self.p.body.push(Stmt::Load(loaded, from));
        if other || self.r.chance(30) {
            self.p.body.push(Stmt::Barrier);
        }
        let carried = self.name();
        self.p
            .body
            .push(Stmt::Fill(carried, to.clone(), Float::Data(loaded, 0)));
        self.p.body.push(Stmt::Store(to, carried));
    }

    /// Two ways to store the same.
    fn split(&mut self) {
        let values = self.values();
        let (x, y, at) = self.vectors(values, Element::F32);
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at);
        let loaded = self.name();
        self.p.body.push(Stmt::Load(loaded, from));
        let mut around = self.around();
        around.sizes += 1;
        self.size(false);
        let p = expressions::pred(&mut self.r, &around, false, 2);
        let one = vec![Stmt::Store(to.clone(), loaded)];
        let mapped = self.name();
        let function = self.function();
        let other = vec![Stmt::Map(mapped, loaded, function), Stmt::Store(to, mapped)];
        if self.r.chance(50) {
            return self.p.body.push(Stmt::WhenElse(p, one, other));
        }
        // Two branches, of which one should be taken.
        let opposite = match (&p, self.r.below(3)) {
            (Pred::Index(a, _, b), 0) => {
                Pred::Index(a.clone(), expressions::cmp(&mut self.r), b.clone())
            }
            (Pred::Int(s, a, _, b), 0 | 1) => {
                Pred::Int(*s, a.clone(), expressions::cmp(&mut self.r), b.clone())
            }
            (Pred::Float(a, _, b), 0 | 1) => {
                Pred::Float(a.clone(), expressions::cmp(&mut self.r), b.clone())
            }
            _ => Pred::Not(Box::new(p.clone())),
        };
        self.p.body.push(Stmt::When(p, one));
        self.p.body.push(Stmt::When(opposite, other));
    }

    fn exit(&mut self) {
        let (x, y, at) = self.vectors(1, Element::F32);
        let n = Ix::Size(0);
        let from = self.flat(x, 1, at.clone());
        let to = Self::like(&from, y, at.clone());
        let mine = sum(
            Ix::Scale(Box::new(at), self.t()),
            if self.r.chance(80) {
                Ix::Thread
            } else {
                Ix::Lane
            },
        );
        let p = Pred::Index(mine, self.r.pick(&[Cmp::Ge, Cmp::Ge, Cmp::Gt]), n);
        self.p.body.push(Stmt::Exit(p));
        if self.r.chance(30) {
            let around = self.around();
            self.p
                .body
                .push(Stmt::Exit(expressions::pred(&mut self.r, &around, true, 1)));
        }
        self.p.body.push(Stmt::Copy(from, to));
    }

    /// One block goes over all tiles.
    fn one_block(&mut self) {
        let values = self.values();
        let n = self.extent();
        let x = self.global(Element::F32, std::slice::from_ref(&n), false);
        let y = self.global(Element::F32, std::slice::from_ref(&n), true);
        let steps = Ix::TilesIn(Box::new(n), values * self.t());
        let from = self.flat(x, values, Ix::Counter(0));
        let to = Self::like(&from, y, Ix::Counter(0));
        let step = self.r.pick(&[1, 1, 1, 2, 3]);
        let body = (0..step).flat_map(|ahead| {
            let at = |share: &Share| Share {
                at: vec![sum(Ix::Counter(0), Ix::Const(ahead))],
                ..share.clone()
            };
            [Stmt::Copy(at(&from), at(&to))]
        });
        let body = body.collect();
        self.p.body.push(Stmt::Loop {
            start: 0,
            step,
            limit: steps,
            body,
        });
    }

    /// Barriers that all threads meet, or none.
    fn uniform(&mut self) {
        self.exchange();
        let around = self.around();
        let p = expressions::pred(&mut self.r, &around, true, 2);
        let barrier = self
            .p
            .body
            .iter()
            .position(|s| *s == Stmt::Barrier)
            .unwrap_or(0);
        match self.r.below(3) {
            0 => {
                let rest = self.p.body.split_off(barrier);
                self.p.body.push(Stmt::WhenElse(p, rest.clone(), rest));
            }
            1 => self.p.body[barrier] = Stmt::WhenElse(p, vec![Stmt::Barrier], vec![Stmt::Barrier]),
            _ => {
                let q = match &p {
                    Pred::Index(a, _, b) => {
                        Pred::Index(a.clone(), expressions::cmp(&mut self.r), b.clone())
                    }
                    Pred::Int(s, a, _, b) => Pred::Int(
                        *s ^ self.r.chance(50),
                        a.clone(),
                        expressions::cmp(&mut self.r),
                        b.clone(),
                    ),
                    other => Pred::Not(Box::new(other.clone())),
                };
                self.p.body[barrier] = Stmt::When(p, vec![Stmt::Barrier]);
                self.p
                    .body
                    .insert(barrier, Stmt::When(q, vec![Stmt::Barrier]));
            }
        }
    }

    fn shuffles(&mut self) {
        self.power(&[32, 32, 64, 128]);
        let (x, y, at) = self.vectors(1, Element::F32);
        let from = self.flat(x, 1, at.clone());
        let to = Self::like(&from, y, at);
        let mut last = self.name();
        self.p.body.push(Stmt::Load(last, from));
        for lane in [1, 2, 4, 8, 16] {
            let next = self.name();
            let mode = self.r.pick(&[
                Shuffle::Butterfly,
                Shuffle::Up,
                Shuffle::Down,
                Shuffle::Index,
            ]);
            let other = Float::Shuffle(mode, Box::new(Float::It), Box::new(Int::Const(lane)));
            let f = Float::Binary(FloatOp::Add, Box::new([Float::It, other]));
            self.p.body.push(Stmt::Map(next, last, f));
            last = next;
        }
        self.p.body.push(Stmt::Store(to, last));
    }

    /// Sums of what stands before, by doubling distances.
    fn scan(&mut self) {
        let (x, y, at) = self.vectors(1, Element::F32);
        let n = self.t();
        let s = self.shared(Element::F32, format!("{n}:1"));
        let mut from = self.flat(x, 1, at.clone());
        from.by = By::Layout(format!("({n},1):(1,0)"), 1);
        let (put, to) = (Self::like(&from, s, zero()), Self::like(&from, y, at));
        let sums = self.name();
        self.p.body.push(Stmt::Load(sums, from));
        for by in [1, 2, 4, 8, 16, 32, 64] {
            if by >= n || by > 8 && self.r.chance(40) {
                break;
            }
            let (before, new) = (self.name(), self.name());
            self.p.body.push(Stmt::Store(put.clone(), sums));
            self.p.body.push(Stmt::Barrier);
            let behind = Pred::Index(Ix::Thread, Cmp::Ge, Ix::Const(by));
            let moved = Share {
                moved: vec![Ix::Const(-by)],
                ..put.clone()
            };
            let add = vec![
                Stmt::Load(before, moved),
                Stmt::Sum(new, sums, before),
                Stmt::Assign(sums, new),
            ];
            self.p.body.push(Stmt::When(behind, add));
            self.p.body.push(Stmt::Barrier);
        }
        self.p.body.push(Stmt::Store(to, sums));
    }

    fn transpose(&mut self) {
        let shape = self.shape();
        let [r, c] = shape;
        let (rows, cols) = (self.extent(), self.extent());
        let x = self.global(Element::F32, &[rows.clone(), cols.clone()], false);
        let y = self.global(Element::F32, &[cols.clone(), rows.clone()], true);
        let (i, j) = (self.axis(&rows, r), self.axis(&cols, c));
        let from = self.tile(x, shape, &[i.clone(), j.clone()]);
        if self.r.chance(40) {
            let from = Share {
                by: match from.by {
                    By::Layout(text, _) => By::Layout(text, 1),
                    by => by,
                },
                ..from
            };
            let to = Share {
                of: y,
                shape: vec![c, r],
                at: vec![j, i],
                transposed: true,
                ..from.clone()
            };
            return self.p.body.push(Stmt::Copy(from, to));
        }
        let layout = layouts::tile(&mut self.r, r, c);
        let s = self.shared(Element::F32, layout);
        let put = Share {
            of: s,
            at: vec![zero(), zero()],
            ..from.clone()
        };
        let to = self.tile(y, [c, r], &[j, i]);
        let take = Share {
            of: s,
            shape: shape.to_vec(),
            at: vec![zero(), zero()],
            transposed: true,
            by: match &to.by {
                By::Layout(text, _) => By::Layout(text.clone(), 1),
                by => by.clone(),
            },
            ..to.clone()
        };
        self.p.body.push(Stmt::Copy(from, put));
        self.p.body.push(Stmt::Barrier);
        self.p.body.push(Stmt::Copy(take, to));
    }

    /// Each element and those behind it.
    fn halo(&mut self) {
        let values = self.values();
        let (x, y, at) = self.vectors(values, Element::F32);
        if self.r.chance(60) {
            let longer = sum(Ix::Size(0), Ix::Const(2));
            self.p.globals[0].extents = vec![longer];
        }
        let mut from = self.flat(x, values, at.clone());
        if let By::Layout(_, vector) = &mut from.by {
            *vector = 1;
        }
        let to = Self::like(&from, y, at);
        let mut last = None;
        let first = self.r.pick(&[0, 0, 0, 0, 0, 1, -1]);
        for by in first..first + 3 {
            let loaded = self.name();
            let moved = Share {
                moved: vec![Ix::Const(by)],
                fill: self.r.chance(50).then_some(0.0),
                ..from.clone()
            };
            self.p.body.push(Stmt::Load(loaded, moved));
            last = Some(match last {
                None => loaded,
                Some(last) => {
                    let sum = self.name();
                    self.p.body.push(if self.r.chance(70) {
                        Stmt::Sum(sum, last, loaded)
                    } else {
                        Stmt::MulAdd(sum, [last, loaded, last])
                    });
                    sum
                }
            });
        }
        self.p.body.push(Stmt::Store(to, last.unwrap_or(0)));
    }

    /// What the neighbour in the warp has, through shared memory.
    fn neighbours(&mut self) {
        let (x, y, at) = self.vectors(1, Element::F32);
        let n = self.t();
        let s = self.shared(Element::F32, format!("{n}:1"));
        let from = self.flat(x, 1, at.clone());
        let (put, to) = (Self::like(&from, s, zero()), Self::like(&from, y, at));
        let take = Share {
            thread: self.neighbour(),
            ..put.clone()
        };
        let loaded = self.name();
        self.p.body.push(Stmt::Copy(from, put));
        let meet = self.r.pick(&[Stmt::WarpBarrier, Stmt::Barrier]);
        self.p.body.push(meet);
        self.p.body.push(Stmt::Load(loaded, take));
        let filled = self.name();
        self.p
            .body
            .push(Stmt::Fill(filled, to.clone(), Float::Data(loaded, 0)));
        self.p.body.push(Stmt::Store(to, filled));
    }

    /// A loop that is left early, by what a variable has become.
    fn search(&mut self) {
        let values = self.values();
        let (x, y, at) = self.vectors(values, Element::F32);
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at);
        let (loaded, count) = (self.name(), self.name());
        self.p.body.push(Stmt::Load(loaded, from));
        let around = self.around();
        let first = expressions::int(&mut self.r, &around, true, 1);
        self.p.body.push(Stmt::Let(count, first));
        let limit = self.limit();
        let mut around = self.around();
        around.counters = 1;
        let uniform = self.r.chance(50);
        let leave = expressions::pred(&mut self.r, &around, uniform, 2);
        let next = Int::Binary(
            self.r.pick(&[IntOp::Add, IntOp::Sub, IntOp::Max]),
            self.r.chance(50),
            Box::new([
                Int::Variable(count),
                expressions::int(&mut self.r, &around, uniform, 1),
            ]),
        );
        let mut body = vec![Stmt::Set(count, next), Stmt::Break(leave)];
        if self.r.chance(30) {
            body.push(Stmt::Barrier);
        }
        if self.r.chance(50) {
            body.swap(0, 1);
        }
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: 1,
            limit,
            body,
        });
        let value = Float::OfInt(Box::new(Int::Variable(count)), true);
        let last = self.name();
        self.p.body.push(Stmt::Map(
            last,
            loaded,
            Float::Binary(FloatOp::Add, Box::new([Float::It, value])),
        ));
        if self.r.chance(40) {
            let around = self.around();
            let p = expressions::pred(&mut self.r, &around, false, 1);
            return self.p.body.push(Stmt::WhenElse(
                p,
                vec![Stmt::Store(to.clone(), loaded)],
                vec![Stmt::Store(to, last)],
            ));
        }
        self.p.body.push(Stmt::Store(to, last));
    }

    /// Puts something around the end of the body, or in between, that leaves a right kernel right.
    fn decorate(&mut self) {
        let at = self.r.below(self.p.body.len() + 1);
        if self.r.chance(30) {
            self.size(false);
        }
        let rest = self.p.body.split_off(at);
        let around = self.around();
        let (uniform, any) = (
            expressions::pred(&mut self.r, &around, true, 2),
            expressions::pred(&mut self.r, &around, false, 2),
        );
        match self.r.below(11) {
            9 => {
                let text = self
                    .r
                    .pick(&["one", "two\nlines", "bar.sync 0;\r\n\u{85}ret;", "*/"]);
                self.p.body.push(Stmt::Comment(text.to_owned()));
                self.p.body.extend(rest);
                self.p.resident = self.r.pick(&[None, Some(1), Some(4)]);
                self.p.lines = self.r.chance(50);
            }
            10 if !self.p.sizes.is_empty() => {
                // What is launched is checked for it at the entry.
                let size = Ix::Size(self.r.below(self.p.sizes.len()));
                let cmp = self.r.pick(&[Cmp::Ge, Cmp::Ge, Cmp::Gt, Cmp::Le, Cmp::Ne]);
                let most = if cmp == Cmp::Le { 1000 } else { 3 };
                let than = Ix::Const(self.r.below(most) as i64);
                self.p.body.insert(0, Stmt::Assume(size, cmp, than));
                self.p.body.extend(rest);
            }
            0 => self
                .p
                .body
                .push(Stmt::WhenElse(uniform, rest.clone(), rest)),
            1 => self.p.body.push(Stmt::WhenElse(any, rest.clone(), rest)),
            2 => self.p.body.push(Stmt::Region(rest)),
            3 => {
                // Once.
                let mut rest = rest;
                deeper(&mut rest);
                let (start, step) = self.r.pick(&[(0, 1), (0, 2), (1, 1), (1, 3)]);
                let limit = Ix::Const(start + 1);
                self.p.body.push(Stmt::Loop {
                    start,
                    step,
                    limit,
                    body: rest,
                });
            }
            4 => {
                self.p.body.push(Stmt::When(uniform, vec![Stmt::Barrier]));
                self.p.body.extend(rest);
            }
            5 => {
                let limit = self.limit();
                let mut body = vec![Stmt::Barrier];
                if self.r.chance(50) {
                    body.push(Stmt::Break(uniform));
                }
                self.p.body.push(Stmt::Loop {
                    start: 0,
                    step: 1,
                    limit,
                    body,
                });
                self.p.body.extend(rest);
            }
            6 => {
                let name = self.name() + 50;
                let first = expressions::int(&mut self.r, &around, false, 2);
                self.p.body.push(Stmt::Let(name, first));
                let then = expressions::int(&mut self.r, &around, false, 1);
                self.p
                    .body
                    .push(Stmt::When(any, vec![Stmt::Set(name, then)]));
                let p = Pred::Int(
                    self.r.chance(50),
                    Int::Variable(name),
                    expressions::cmp(&mut self.r),
                    Int::Const(self.r.pick(&[0, 1, 5, 0x8000_0000])),
                );
                self.p.body.push(Stmt::WhenElse(p, rest.clone(), rest));
            }
            7 => {
                self.p.body.push(Stmt::Barrier);
                self.p.body.extend(rest);
            }
            _ => {
                // Some are ready early.
                self.p.body.extend(rest);
                self.p.body.push(Stmt::Exit(any));
            }
        }
    }
}

/// Notes what a statement defines.
pub(crate) fn note(s: &Stmt, a: &mut Around) {
    match s {
        Stmt::Load(name, _)
        | Stmt::Fill(name, ..)
        | Stmt::Map(name, ..)
        | Stmt::Sum(name, ..)
        | Stmt::MulAdd(name, _)
        | Stmt::Convert(name, ..)
        | Stmt::MapAt(name, ..)
        | Stmt::Words(name, _)
        | Stmt::Unpack(name, ..)
        | Stmt::Fold(name, ..)
        | Stmt::Split(name, ..)
        | Stmt::Relayout(name, ..) => {
            a.fragments.push(*name);
        }
        Stmt::Let(name, _) => a.ints.push(*name),
        Stmt::LetFloat(name, _) => a.floats.push(*name),
        _ => {}
    }
}

/// Counters one loop further in.
fn deeper(body: &mut [Stmt]) {
    struct Deeper;
    impl crate::visit::Visitor for Deeper {
        fn ix(&mut self, e: &mut Ix) {
            if let Ix::Counter(i) = e {
                *i += 1;
            }
        }
    }
    for s in body {
        crate::visit::stmt(s, &mut Deeper);
    }
}
