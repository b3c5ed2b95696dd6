//! Families of grids, tensors, fragments and products: what the layer has beside loads, stores and barriers.

use tilewright::Operand;
use tilewright::codegen::ir::{Cmp, Element};
use tilewright::codegen::view::{Combine, Packed};

use crate::expressions;
use crate::generate::{ELEMENTS, Maker, added, sum, zero};
use crate::layouts;
use crate::program::{
    Blocks, By, Count, Float, Int, Ix, Memory, Pred, Ring, Share, Shared, Stmt, Tile,
};

impl Maker {
    fn push(&mut self, s: Stmt) {
        self.p.body.push(s);
    }

    /// A new fragment.
    fn made(&mut self, make: impl FnOnce(usize) -> Stmt) -> usize {
        let name = self.name();
        self.push(make(name));
        name
    }

    fn loaded(&mut self, from: &Share) -> usize {
        self.made(|name| Stmt::Load(name, from.clone()))
    }

    /// A share of a tile of two modes, by its layout.
    fn by_layout(of: Memory, shape: [i64; 2], at: &[Ix; 2], by: String) -> Share {
        Share {
            part: None,
            of,
            slice: Vec::new(),
            moved: Vec::new(),
            shape: shape.to_vec(),
            at: at.to_vec(),
            transposed: false,
            by: By::Layout(by, 1),
            thread: Ix::Thread,
            fill: None,
        }
    }

    /// A fixed number of blocks go over the tiles of a vector or of a matrix; now and then by a step that does not fit them.
    pub(crate) fn strided(&mut self) {
        let n = self.extent();
        let wide = self.r.chance(30);
        let values = self.values();
        let (mut extents, mut shape) = (vec![n.clone()], [values * self.t(), 0]);
        if wide {
            shape = self.shape();
            extents.push(self.extent());
        }
        let in_place = self.r.chance(25);
        let y = self.global(Element::F32, &extents, true);
        let x = if in_place {
            y
        } else {
            self.global(Element::F32, &extents, false)
        };
        let count = self.r.pick(&[1, 2, 3, 4, 8]);
        self.p.axes.push(Count {
            blocks: Blocks::Fixed,
            extent: n.clone(),
            tile: count,
        });
        let block = Ix::Tile(0);
        let counter = Ix::Counter(0);
        let (step, at) = match self.r.below(12) {
            0 => (self.r.pick(&[1, count + 1, 2 * count]), sum(counter, block)),
            1 => (count, counter),
            2 => {
                let by = self.r.pick(&[2, count, count + 1]);
                (count, sum(counter, Ix::Scale(Box::new(block), by)))
            }
            // The blocks' own runs of tiles: i of the outer, as many as there are blocks.
            3 => (1, sum(Ix::Scale(Box::new(counter), count), block)),
            4 => (2 * count, sum(counter, Ix::Scale(Box::new(block), 2))),
            _ => (count, sum(counter, block)),
        };
        let from = if wide {
            let j = self.axis(&extents[1].clone(), shape[1]);
            self.tile(x, shape, &[at, j])
        } else {
            self.flat(x, values, at)
        };
        let to = Share {
            of: y,
            ..from.clone()
        };
        let start = self.r.pick(&[0, 0, 0, 0, 0, 0, 0, 1, count]);
        let limit = match self.r.below(8) {
            0 => Ix::TilesIn(Box::new(n), self.r.pick(&[1, shape[0] + 1, 2 * shape[0]])),
            1 => sum(Ix::TilesIn(Box::new(n), shape[0]), Ix::Const(1)),
            _ => Ix::TilesIn(Box::new(n), shape[0]),
        };
        let mut body = Vec::new();
        match self.r.below(4) {
            0 if !in_place && !wide => {
                // Through shared memory.
                let layout = layouts::row(&mut self.r, shape[0]);
                let s = self.shared(Element::F32, layout);
                let put = Self::like(&from, s, zero());
                let take = self.flat(s, values, zero());
                let to = Share {
                    by: take.by.clone(),
                    ..to
                };
                body.extend([Stmt::Copy(from, put), Stmt::Barrier, Stmt::Copy(take, to)]);
                if self.r.chance(80) {
                    body.push(Stmt::Barrier);
                }
            }
            1 | 2 => {
                let (loaded, mapped) = (self.name(), self.name());
                let value = Float::OfInt(Box::new(Int::Index(Ix::Counter(0))), true);
                body.extend([
                    Stmt::Load(loaded, from),
                    Stmt::Map(mapped, loaded, added(value)),
                    Stmt::Store(to, mapped),
                ]);
            }
            _ => body.push(Stmt::Copy(from, to)),
        }
        self.push(Stmt::Loop {
            start,
            step,
            limit,
            body,
        });
    }

    /// Matrices of a tensor, one after the other along an axis of the grid.
    pub(crate) fn heads(&mut self) {
        let shape = self.shape();
        let heads = self.extent();
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [heads.clone(), rows.clone(), cols.clone()];
        let element = self.r.pick(&[Element::F32, Element::F16, Element::S8]);
        let x = self.global(element, &extents, false);
        let y = self.global(element, &extents, true);
        let (i, j) = (self.axis(&rows, shape[0]), self.axis(&cols, shape[1]));
        let tile = self.r.pick(&[1, 1, 1, 1, 1, 1, 2]);
        let mut head = self.axis(&heads, tile);
        if self.r.chance(10) {
            head = sum(head, Ix::Const(1));
        }
        let from = Share {
            slice: vec![head],
            ..self.tile(x, shape, &[i, j])
        };
        let to = Share {
            of: y,
            ..from.clone()
        };
        if self.r.chance(50) {
            let loaded = self.loaded(&from);
            return self.push(Stmt::Store(to, loaded));
        }
        self.push(Stmt::Copy(from, to));
    }

    /// Copies by an atom for loads and stores.
    pub(crate) fn tiled_copies(&mut self) {
        self.power(&[8, 16, 32, 32, 64, 64, 128]);
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let x = self.global(Element::F32, &extents, false);
        let y = self.global(Element::F32, &extents, true);
        let n = self.r.pick(&[1, 2, 4]);
        let b = self.r.pick(&[1, 2, 4, 8]).min(self.t());
        let a = self.t() / b;
        let shape = [a * self.r.pick(&[1, 1, 2]), b * n * self.r.pick(&[1, 1, 2])];
        let by = By::Tiled(n, format!("({a},{b}):({b},1)"), format!("(1,{n}):(0,1)"));
        let (i, j) = (self.axis(&rows, shape[0]), self.axis(&cols, shape[1]));
        let from = Share {
            by,
            ..Self::by_layout(x, shape, &[i.clone(), j.clone()], String::new())
        };
        let to = Share {
            of: y,
            ..from.clone()
        };
        if self.r.chance(40) {
            return self.push(Stmt::Copy(from, to));
        }
        let layout = layouts::tile(&mut self.r, shape[0], shape[1]);
        let s = self.shared(Element::F32, layout);
        let put = Share {
            of: s,
            at: vec![zero(), zero()],
            by: match &from.by {
                By::Tiled(n, threads, values) if self.r.chance(40) => {
                    By::Async(4 * n, threads.clone(), values.clone())
                }
                by => by.clone(),
            },
            ..from.clone()
        };
        let from = Share {
            by: put.by.clone(),
            ..from
        };
        let take = self.tile(s, shape, &[zero(), zero()]);
        let to = Share {
            of: y,
            at: vec![i, j],
            ..take.clone()
        };
        self.push(Stmt::Copy(from, put));
        let wait = self
            .r
            .pick(&[Stmt::WaitAll, Stmt::WaitAll, Stmt::Wait(0), Stmt::Wait(1)]);
        self.push(wait);
        self.push(Stmt::Barrier);
        self.push(Stmt::Copy(take, to));
    }

    /// A transposition through a tile whose layout is derived from how it is used.
    pub(crate) fn derived(&mut self) {
        let shape = self.shape();
        let [r, c] = shape;
        let (rows, cols) = (self.extent(), self.extent());
        let x = self.global(Element::F32, &[rows.clone(), cols.clone()], false);
        let y = self.global(Element::F32, &[cols.clone(), rows.clone()], true);
        let (i, j) = (self.axis(&rows, r), self.axis(&cols, c));
        let from = self.tile(x, shape, &[i.clone(), j.clone()]);
        let to = self.tile(y, [c, r], &[j, i]);
        let s = Memory::Shared(0);
        let put = Share {
            of: s,
            at: vec![zero(), zero()],
            ..from.clone()
        };
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
        let uses = vec![(false, put.clone()), (true, take.clone())];
        // Sometimes for other uses than those that come.
        let uses = match self.r.below(6) {
            0 => vec![uses[0].clone()],
            1 => vec![uses[1].clone()],
            _ => uses,
        };
        self.p.shared.push(Shared {
            element: Element::F32,
            tile: Tile::For(shape, uses),
        });
        self.push(Stmt::Copy(from, put));
        self.push(Stmt::Barrier);
        self.push(Stmt::Copy(take, to));
    }

    /// What is loaded as it is, and stored.
    pub(crate) fn taken(&mut self) {
        let (values, element) = (self.values(), self.element());
        let (x, y, at) = self.vectors(values, element);
        let from = self.flat(x, values, at.clone());
        let to = Self::like(&from, y, at);
        let taken = self.name();
        self.push(Stmt::Take(taken, from));
        if self.r.chance(40) {
            let n = values * self.t();
            let layout = layouts::row(&mut self.r, n);
            let s = self.shared(element, layout);
            let put = Self::like(&to, s, zero());
            let take = self.flat(s, values, zero());
            let again = self.name();
            self.push(Stmt::Put(put, taken));
            self.push(Stmt::Barrier);
            self.push(Stmt::Take(again, take.clone()));
            let to = Share { by: take.by, ..to };
            return self.push(Stmt::Put(to, again));
        }
        self.push(Stmt::Put(to, taken));
    }

    /// A tile in registers: x, y, its share of x, and where it is.
    fn in_registers(&mut self, element: Element) -> (Memory, Share, [i64; 2]) {
        let shape = self.shape();
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let x = self.global(element, &extents, false);
        let y = self.global(element, &extents, true);
        let (i, j) = (self.axis(&rows, shape[0]), self.axis(&cols, shape[1]));
        (y, self.tile(x, shape, &[i, j]), shape)
    }

    /// A layout of a whole tile over all threads.
    fn another(&mut self, [rows, cols]: [i64; 2]) -> String {
        let t = self.t();
        layouts::share(&mut self.r, t, rows * cols / t, cols, 1)
    }

    /// Changes of a tile in registers, one after the other.
    pub(crate) fn fragments(&mut self) {
        let (y, from, shape) = self.in_registers(Element::F32);
        let to = Share {
            of: y,
            ..from.clone()
        };
        let mut by = match &from.by {
            By::Layout(text, _) => text.clone(),
            _ => return,
        };
        let mut last = self.loaded(&from);
        for _ in 0..=self.r.below(4) {
            last = match self.r.below(8) {
                0 => {
                    let mut around = self.around();
                    around.coordinates = true;
                    let f = match self.r.below(2) {
                        0 => expressions::float(&mut self.r, &around, false, 2),
                        _ => Float::Select(
                            Box::new(expressions::pred(&mut self.r, &around, false, 1)),
                            Box::new([Float::It, Float::Const(0.0)]),
                        ),
                    };
                    self.made(|name| Stmt::MapAt(name, last, f))
                }
                1 => {
                    let of = vec![last; 1 + self.r.below(3)];
                    self.made(|name| Stmt::Words(name, of))
                }
                2 | 3 => {
                    by = self.another(shape);
                    let by = by.clone();
                    self.made(|name| Stmt::Relayout(name, last, by))
                }
                4 => {
                    let others = vec![last; self.r.below(3)];
                    self.push(Stmt::Update(last, others));
                    last
                }
                5 | 6 => {
                    let (mode, how) = (self.r.below(2), expressions::combine(&mut self.r));
                    let part = if self.r.chance(50) {
                        self.made(|name| Stmt::Fold(name, last, mode, how))
                    } else {
                        last
                    };
                    let all = self.made(|name| Stmt::Reduce(name, part, mode, how));
                    if self.r.chance(50) {
                        self.push(Stmt::Update(last, vec![all]));
                        last
                    } else {
                        self.made(|name| Stmt::MulAdd(name, [last, all, last]))
                    }
                }
                _ => {
                    let f = Float::Combined(last, expressions::combine(&mut self.r));
                    self.made(|name| Stmt::Map(name, last, added(f)))
                }
            };
        }
        if self.r.chance(20) {
            // One part of many.
            let (mode, parts) = (self.r.below(2), self.r.pick(&[1, 2, 4]));
            let which = self.r.below(parts);
            last = self.made(|name| Stmt::Split(name, last, mode, [parts, which]));
            if parts > 1 {
                // Another output, of parts.
                let mut part = shape;
                part[mode] /= parts as i64;
                if part[mode] == 0 {
                    return;
                }
                let by = self.another(part);
                let moved = self.made(|name| Stmt::Relayout(name, last, by.clone()));
                self.p.axes[mode].tile = part[mode];
                let at = [to.at[0].clone(), to.at[1].clone()];
                let to = Self::by_layout(y, part, &at, by);
                return self.push(Stmt::Store(to, moved));
            }
        }
        let (by, last) = if self.r.chance(70) {
            (by, last)
        } else {
            let by = self.another(shape);
            let text = by.clone();
            (by, self.made(|name| Stmt::Relayout(name, last, text)))
        };
        let to = Share {
            by: By::Layout(by, 1),
            ..to
        };
        self.push(Stmt::Store(to, last));
    }

    /// Arithmetic of the registers' words, in any type.
    pub(crate) fn words(&mut self) {
        let element = self.r.pick(&ELEMENTS);
        let (y, from, _) = self.in_registers(element);
        let to = Share {
            of: y,
            ..from.clone()
        };
        let mut names = vec![self.loaded(&from)];
        for _ in 0..=self.r.below(3) {
            let of = (0..=self.r.below(3)).map(|_| self.r.pick(&names));
            let of = of.collect();
            let new = self.made(|name| Stmt::Words(name, of));
            names.push(new);
        }
        let last = names[names.len() - 1];
        self.push(Stmt::Store(to, last));
    }

    /// Words of eight values of 4 bits, as values of another type.
    pub(crate) fn unpack(&mut self) {
        let shape = self.shape();
        let [r, c] = shape;
        let wide = [r, 8 * c];
        let to = self.r.pick(&[
            Element::F16,
            Element::Bf16,
            Element::F32,
            Element::S8,
            Element::E4m3,
            Element::S32,
        ]);
        let packed = self.r.pick(&[Packed::S4, Packed::U4, Packed::E2m1]);
        let rows = self.extent();
        // One tile has whole rows, or a matrix has several, whose values the prover does not count by their words.
        let several = self.r.chance(10);
        let cols = if several { self.extent() } else { Ix::Const(c) };
        let x = self.global(Element::S32, &[rows.clone(), cols.clone()], false);
        let longer = if several {
            Ix::Scale(Box::new(cols.clone()), 8)
        } else {
            Ix::Const(
                self.r
                    .pick(&[8 * c, 8 * c, 8 * c, 8 * c, 8 * c, 8 * c - 1, c]),
            )
        };
        let y = self.global(to, &[rows.clone(), longer], true);
        let i = self.axis(&rows, r);
        let j = if several { self.axis(&cols, c) } else { zero() };
        let at = [i, j];
        let t = self.t();
        let [of_words, of_values] = layouts::words(&mut self.r, t, r * c / t, c);
        let from = Self::by_layout(x, shape, &at, of_words);
        let loaded = self.loaded(&from);
        let mut last = self.made(|name| Stmt::Unpack(name, loaded, packed, to));
        let mut by = of_values;
        if self.r.chance(40) {
            by = self.another(wide);
            let text = by.clone();
            last = self.made(|name| Stmt::Relayout(name, last, text));
        } else if self.r.chance(10) {
            by = self.another(wide);
        }
        let to = Self::by_layout(y, wide, &at, by);
        self.push(Stmt::Store(to, last));
    }

    /// What rows (or columns) come to.
    pub(crate) fn row_sums(&mut self) {
        let shape = self.shape();
        let mode = self.r.below(2);
        let n = self.extent();
        let mut extents = [Ix::Const(shape[0]), Ix::Const(shape[1])];
        extents[mode] = n.clone();
        let x = self.global(Element::F32, &extents, false);
        let y = self.global(Element::F32, std::slice::from_ref(&n), true);
        let mut at = [zero(), zero()];
        at[mode] = self.axis(&n, shape[mode]);
        let from = self.tile(x, shape, &at);
        let to = Share {
            of: y,
            shape: vec![shape[mode]],
            at: vec![at[mode].clone()],
            by: By::Along(mode, Box::new(from.clone())),
            ..from.clone()
        };
        let how = expressions::combine(&mut self.r);
        let along = if self.r.chance(90) { 1 - mode } else { mode };
        let loaded = self.loaded(&from);
        let part = if self.r.chance(40) {
            self.made(|name| Stmt::Fold(name, loaded, along, how))
        } else {
            loaded
        };
        let last = self.made(|name| Stmt::Reduce(name, part, along, how));
        self.push(Stmt::Store(to, last));
    }

    /// A tile times a row of weights (or a column), or what is stored where a share's coordinates say.
    pub(crate) fn weights(&mut self) {
        let (y, from, shape) = self.in_registers(Element::F32);
        let to = Share {
            of: y,
            ..from.clone()
        };
        let mode = self.r.below(2);
        let extent = self.p.globals[0].extents[mode].clone();
        let w = self.global(Element::F32, &[extent], false);
        let weights = Share {
            of: w,
            shape: vec![shape[mode]],
            at: vec![from.at[mode].clone()],
            by: By::Along(mode, Box::new(from.clone())),
            ..from.clone()
        };
        let loaded = self.loaded(&from);
        let weights = self.loaded(&weights);
        let last = if self.r.chance(50) {
            self.made(|name| Stmt::MulAdd(name, [loaded, weights, loaded]))
        } else {
            self.push(Stmt::Update(loaded, vec![weights]));
            loaded
        };
        if self.r.chance(30) {
            let held = Ix::Held(
                Box::new(to.clone()),
                self.r.below(4) as i64,
                self.r.below(2),
            );
            let p = Pred::Index(held, expressions::cmp(&mut self.r), Ix::Const(2));
            let new = self.name();
            let store = vec![
                Stmt::Map(new, last, added(Float::Const(1.0))),
                Stmt::Store(to.clone(), new),
            ];
            return self.push(Stmt::WhenElse(p, store, vec![Stmt::Store(to, last)]));
        }
        self.push(Stmt::Store(to, last));
    }

    /// One value a thread, combined over groups of threads.
    pub(crate) fn reduced(&mut self) {
        let (x, y, at) = self.vectors(1, Element::F32);
        let from = self.flat(x, 1, at.clone());
        let to = Self::like(&from, y, at);
        let mut last = self.loaded(&from);
        for _ in 0..=self.r.below(3) {
            let (t, how) = (self.t(), expressions::combine(&mut self.r));
            let groups = expressions::groups(&mut self.r, t);
            let all = Float::Reduced(Box::new(Float::It), groups, how);
            last = self.made(|name| Stmt::Map(name, last, added(all)));
        }
        if self.r.chance(30) {
            // Until it is small.
            let around = self.around();
            let p = expressions::pred(&mut self.r, &around, true, 1);
            let again = self.name();
            let how = Combine::Max;
            let groups = format!("{}:0", self.t());
            let all = Float::Reduced(Box::new(Float::It), groups, how);
            let body = vec![
                Stmt::Map(again, last, all),
                Stmt::Update(last, vec![again]),
                Stmt::Break(p),
            ];
            let limit = self.limit();
            self.push(Stmt::Loop {
                start: 0,
                step: 1,
                limit,
                body,
            });
        }
        self.push(Stmt::Store(to, last));
    }

    /// Two rings, or one whose stages have two tiles.
    pub(crate) fn rings(&mut self) {
        self.power(&[8, 16, 32, 32, 64]);
        let (rows, cols) = (self.extent(), self.extent());
        let extents = [rows.clone(), cols.clone()];
        let x = self.global(Element::F32, &extents, false);
        let w = self.global(Element::F32, &extents, false);
        let y = self.global(Element::F32, &extents, true);
        let (from, shape) = self.copies(x, &[zero(), Ix::Step]);
        let row = self.axis(&rows, shape[0]);
        let from = Share {
            at: vec![row.clone(), Ix::Step],
            ..from
        };
        let other = Share {
            of: w,
            ..from.clone()
        };
        let one = self.r.chance(50);
        let into = |stage| Share {
            of: Memory::Stage(stage),
            at: vec![zero(), zero()],
            ..from.clone()
        };
        let mut stages = || self.r.pick(&[1, 2, 2, 3, 4]);
        let rings = if one {
            vec![Ring {
                stages: stages(),
                shape,
                fill: vec![[from.clone(), into(0)], [other, into(1)]],
            }]
        } else {
            // A ring's own tiles are its first ones.
            vec![
                Ring {
                    stages: stages(),
                    shape,
                    fill: vec![[from.clone(), into(0)]],
                },
                Ring {
                    stages: stages(),
                    shape,
                    fill: vec![[other, into(0)]],
                },
            ]
        };
        let take = self.tile(Memory::Stage(0), shape, &[zero(), zero()]);
        let second = Share {
            of: Memory::Stage(1),
            ..take.clone()
        };
        self.p.globals[2].extents[1] = Ix::Const(shape[1]);
        let to = Share {
            of: y,
            at: vec![row, zero()],
            ..take.clone()
        };
        let (sums, a, b) = (self.name(), self.name(), self.name());
        self.push(Stmt::Fill(sums, to.clone(), Float::Const(0.0)));
        let body = vec![
            Stmt::Load(a, take),
            Stmt::Load(b, second),
            Stmt::Update(sums, vec![a, b]),
        ];
        let steps = Ix::TilesIn(Box::new(cols), shape[1]);
        self.push(Stmt::Pipeline { rings, steps, body });
        self.push(Stmt::Store(to, sums));
    }

    /// Products of 16x8x16 by one or several warps: operands by loads or by `ldmatrix`, and another product of what came out.
    pub(crate) fn product(&mut self) {
        let warps = self
            .r
            .pick(&[[1, 1], [1, 1], [1, 1], [2, 1], [1, 2], [2, 2]]);
        let [wm, wn] = warps;
        let extra = wm * wn == 1 && self.r.chance(25);
        self.p.threads = 32 * (wm * wn) as u32 * if extra { 2 } else { 1 };
        let (m, n) = (self.extent(), self.extent());
        let k = Ix::Const(16);
        let a = self.global(Element::F16, &[m.clone(), k.clone()], false);
        let b = self.global(Element::F16, &[n.clone(), k], false);
        let c = self.global(Element::F32, &[m.clone(), n.clone()], true);
        let wide = self.r.pick(&[1, 1, 2]);
        let [rows, cols] = [16 * wm, 8 * wn * wide];
        let (i, j) = (self.axis(&m, rows), self.axis(&n, cols));
        let thread = if wm * wn == 1 && self.r.chance(90) {
            Ix::Lane
        } else {
            Ix::Thread
        };
        let share = |of, shape: [i64; 2], at: [Ix; 2], operand| Share {
            by: By::Operand(operand, warps),
            thread: thread.clone(),
            ..Self::by_layout(of, shape, &at, String::new())
        };
        let from_a = share(a, [rows, 16], [i.clone(), zero()], Operand::A);
        let from_b = share(b, [cols, 16], [j.clone(), zero()], Operand::B);
        let mut to = share(c, [rows, cols], [i, j], Operand::C);
        let mut body = Vec::new();
        let mut operands = Vec::new();
        for from in [from_a, from_b] {
            let name = self.name();
            operands.push(name);
            if extra || self.r.chance(60) {
                body.push(Stmt::Load(name, from));
                continue;
            }
            let shape = [from.shape[0], from.shape[1]];
            let by = self.another(shape);
            let plain = Share {
                by: By::Layout(by, 1),
                thread: Ix::Thread,
                ..from.clone()
            };
            let layout = match self.r.below(3) {
                0 => format!("Sw<1,3,3> o ({},16):(16,1)", shape[0]),
                1 => format!("({},16):(24,1)", shape[0]),
                _ => format!("({},16):(16,1)", shape[0]),
            };
            let s = self.shared(Element::F16, layout);
            let put = Share {
                of: s,
                at: vec![zero(), zero()],
                ..plain.clone()
            };
            body.push(Stmt::Copy(plain, put));
            body.push(Stmt::Barrier);
            let by = match &from.by {
                By::Operand(operand, warps) if self.r.chance(70) => By::Matrices(*operand, *warps),
                by => by.clone(),
            };
            body.push(Stmt::Load(
                name,
                Share {
                    of: s,
                    at: vec![zero(), zero()],
                    by,
                    ..from
                },
            ));
        }
        let sums = self.name();
        body.push(Stmt::Accumulators(sums, [rows, cols], warps, thread));
        body.push(Stmt::Gemm([operands[0], operands[1], sums], warps));
        let mut last = sums;
        if !extra && self.r.chance(30) {
            if cols == 16 && wn == 1 && self.r.chance(60) {
                // What came out is A of another product.
                let (half, again) = (self.name(), self.name());
                body.push(Stmt::Convert(half, sums, Element::F16));
                body.push(Stmt::Operand(again, half, Operand::A, warps));
                body.push(Stmt::Gemm([again, operands[1], sums], warps));
            } else {
                let by = self.another([rows, cols]);
                let moved = self.name();
                body.push(Stmt::Relayout(moved, last, by.clone()));
                last = moved;
                to.by = By::Layout(by, 1);
            }
        }
        body.push(Stmt::Store(to, last));
        if extra && self.r.chance(80) {
            let first = Pred::Index(Ix::Warp, Cmp::Eq, zero());
            return self.push(Stmt::When(first, body));
        }
        self.p.body.extend(body);
    }
}
