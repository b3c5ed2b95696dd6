//! Programs whose indices, lengths and branches come from data.

use tilewright::codegen::ir::{Cmp, Element};
use tilewright::codegen::view::Combine;

use crate::expressions;
use crate::generate::{Maker, sum, zero};
use crate::program::{Float, FloatOp, Int, IntOp, Ix, Memory, Pred, Stmt};

impl Maker {
    /// This thread's element of the block's tile; sometimes another one's.
    fn own(&mut self, tile: &Ix) -> Ix {
        let t = self.t();
        let by = self.r.pick(&[t, t, t, t, t, t, t - 1, t + 1, 2 * t, 0]);
        let thread = self
            .r
            .pick(&[Ix::Thread, Ix::Thread, Ix::Thread, Ix::Thread, Ix::Lane]);
        Ix::Linear(vec![(by, tile.clone()), (1, thread)], 0)
    }

    fn right(&self, tile: &Ix) -> Ix {
        Ix::Linear(vec![(self.t(), tile.clone()), (1, Ix::Thread)], 0)
    }

    /// An element of integers as an index, clamped or not.
    fn data(&mut self, of: Memory, at: Ix) -> Ix {
        let data = Ix::Data(of, vec![at], self.r.chance(50));
        match self.r.below(4) {
            0 => data,
            1 => Ix::Rem(Box::new(Ix::Clamp(Box::new(data), 0, 1 << 20)), 16),
            _ => {
                let most = self.r.pick(&[0, 3, 15, 15, 31, 63]);
                Ix::Clamp(Box::new(data), 0, most)
            }
        }
    }

    /// n, integers of it, and this block's tile of as many as threads.
    fn integers(&mut self) -> (Ix, Memory, Ix) {
        let n = self.extent();
        let x = self.global(Element::S32, std::slice::from_ref(&n), false);
        if self.r.chance(40) {
            let low = Ix::Const(self.r.pick(&[0, 0, 0, 0, 1, -1]));
            let t = self.t();
            let high = match self.r.below(4) {
                0 => n.clone(),
                1 => sum(n.clone(), Ix::Const(self.r.pick(&[-1, 1]))),
                _ => Ix::Const(self.r.pick(&[t, t, t - 1, t + 1, 16, 2])),
            };
            if let Some(last) = self.p.globals.last_mut() {
                last.range = Some([low, high]);
            }
        }
        let tile = self.t();
        let at = self.axis(&n, tile);
        (n, x, at)
    }

    pub(crate) fn gather(&mut self) {
        let (n, ids, tile) = self.integers();
        let rows = self.extent();
        let table = self.global(Element::F32, std::slice::from_ref(&rows), false);
        let y = self.global(Element::F32, std::slice::from_ref(&n), true);
        let (i, mine) = (self.own(&tile), self.right(&tile));
        let row = if self.r.chance(50) {
            Ix::Data(ids, vec![i], self.r.chance(20))
        } else {
            self.data(ids, i)
        };
        let mut value = Float::Element(table, vec![row.clone()]);
        if self.r.chance(40) {
            // From shared memory, too.
            let t = self.t();
            let s = self.shared(Element::F32, format!("{t}:1"));
            self.p
                .body
                .push(Stmt::PutFloat(s, vec![Ix::Thread], Float::Const(1.0)));
            if self.r.chance(85) {
                self.p.body.push(Stmt::Barrier);
            }
            let most = self.r.pick(&[t - 1, t - 1, t - 1, t, t / 2]);
            let at = if self.r.chance(60) {
                Ix::Clamp(Box::new(row), 0, most)
            } else {
                row
            };
            let other = Float::Element(s, vec![at]);
            value = Float::Binary(FloatOp::Add, Box::new([value, other]));
        }
        self.p.body.push(Stmt::PutFloat(y, vec![mine], value));
    }

    /// Sums of as many elements as data say.
    pub(crate) fn lengths(&mut self) {
        let n = self.extent();
        let ends = Ix::Linear(vec![(1, n.clone())], 1);
        let first = self.global(Element::S32, &[ends], false);
        let entries = self.extent();
        let values = self.global(Element::F32, std::slice::from_ref(&entries), false);
        let y = self.global(Element::F32, std::slice::from_ref(&n), true);
        let tile = self.t();
        let tile = self.axis(&n, tile);
        let mine = self.right(&tile);
        let row = match self.r.below(4) {
            0 => tile.clone(),
            1 => zero(),
            _ => mine.clone(),
        };
        let at = |row: Ix| Ix::Data(first, vec![row], true);
        let begin = at(row.clone());
        let end = at(sum(row, Ix::Const(1)));
        let most = self.r.pick(&[0, 1, 5, 9, 9]);
        let length = Ix::Clamp(Box::new(Ix::Sub(Box::new([end, begin.clone()]))), 0, most);
        let total = self.name();
        self.p.body.push(Stmt::LetFloat(total, Float::Const(0.0)));
        let entry = Float::Element(
            values,
            vec![Ix::Clamp(Box::new(sum(begin, Ix::Counter(0))), 0, 1 << 30)],
        );
        let more = Float::Binary(FloatOp::Add, Box::new([Float::Variable(total), entry]));
        let mut body = vec![Stmt::SetFloat(total, more)];
        if self.r.chance(40) {
            let t = self.t();
            let s = self.shared(Element::F32, format!("{t}:1"));
            self.p
                .body
                .push(Stmt::PutFloat(s, vec![Ix::Thread], Float::Const(2.0)));
            if self.r.chance(80) {
                self.p.body.push(Stmt::Barrier);
            }
            let neighbour = Ix::Rem(
                Box::new(sum(Ix::Thread, Ix::Const(self.r.pick(&[0, 1])))),
                t,
            );
            let read = Float::Element(s, vec![neighbour]);
            let read = Float::Binary(FloatOp::Max, Box::new([Float::Variable(total), read]));
            let which = self.r.below(3);
            if which != 1 {
                body.push(Stmt::SetFloat(total, read));
            }
            if which != 0 && self.r.chance(60) {
                body.push(Stmt::PutFloat(s, vec![Ix::Thread], Float::Variable(total)));
            }
        }
        if self.r.chance(20) {
            body.insert(self.r.below(body.len() + 1), Stmt::Barrier);
        }
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: self.r.pick(&[1, 1, 2]),
            limit: length,
            body,
        });
        self.p
            .body
            .push(Stmt::PutFloat(y, vec![mine], Float::Variable(total)));
    }

    /// Stores at indices from data, once or twice a thread; what a second store has may be what another thread's first one has.
    pub(crate) fn scatter(&mut self) {
        let (n, t) = (self.extent(), self.t());
        let [to, y, other] = [false, true, false]
            .map(|output| self.global(Element::S32, std::slice::from_ref(&n), output));
        for global in [0, 2] {
            self.p.globals[global].special = self.r.chance(80);
        }
        self.p.globals[1].special = true;
        let twice = self.r.chance(50);
        let tile = self.axis(&n, if twice { 2 * t } else { t });
        let (i, far) = if twice {
            let by = |at| Ix::Linear(vec![(2 * t, tile.clone()), (1, Ix::Thread)], at);
            (by(0), by(self.r.pick(&[t, t, t, 0, 1])))
        } else {
            let i = self.own(&tile);
            (i.clone(), i)
        };
        let data = |of: Memory, at: &Ix| Ix::Data(of, vec![at.clone()], false);
        let at = match self.r.below(8) {
            0 => self.data(to, i.clone()),
            1 => sum(data(to, &i), Ix::Const(1)),
            _ => data(to, &i),
        };
        let mut all = vec![Stmt::PutInt(y, vec![at], Int::Index(i.clone()))];
        if twice {
            let second = match self.r.below(4) {
                0 => data(other, &far),
                1 => far.clone(),
                _ => data(to, &far),
            };
            all.push(Stmt::PutInt(y, vec![second], Int::Const(5)));
        }
        let cmp = self.r.pick(&[Cmp::Lt, Cmp::Lt, Cmp::Lt, Cmp::Lt, Cmp::Le]);
        let inside = Pred::Index(far, cmp, n);
        if self.r.chance(12) {
            self.p.body.extend(all);
        } else {
            self.p.body.push(Stmt::When(inside, all));
        }
    }

    pub(crate) fn histogram(&mut self) {
        let (n, x, tile) = self.integers();
        let t = self.t();
        let bins = self.r.pick(&[t, t, t, 2 * t, t / 2 + 1]);
        let counts = self.global(Element::S32, &[Ix::Const(bins)], true);
        self.p.globals[1].special = self.r.chance(95);
        let own = self.shared(Element::S32, format!("{bins}:1"));
        let i = self.own(&tile);
        let each = |at: i64| sum(Ix::Thread, Ix::Const(at));
        for at in (0..bins).step_by(t as usize) {
            let clear = Stmt::PutInt(own, vec![each(at)], Int::Const(0));
            let below = Pred::Index(each(at), Cmp::Lt, Ix::Const(bins));
            self.p.body.push(Stmt::When(below, vec![clear]));
        }
        if self.r.chance(85) {
            self.p.body.push(Stmt::Barrier);
        }
        let most = self.r.pick(&[bins - 1, bins - 1, bins - 1, bins]);
        let bin = Ix::Data(x, vec![i.clone()], true);
        let bin = if self.r.chance(60) {
            Ix::Clamp(Box::new(bin), 0, most)
        } else {
            bin
        };
        let how = self
            .r
            .pick(&[Combine::Add, Combine::Add, Combine::Max, Combine::Min]);
        let count = Stmt::Atomic(own, vec![bin], how, Int::Const(1));
        self.p
            .body
            .push(Stmt::When(Pred::Index(i, Cmp::Lt, n), vec![count]));
        if self.r.chance(85) {
            self.p.body.push(Stmt::Barrier);
        }
        for at in (0..bins).step_by(t as usize) {
            let value = Int::Element(own, vec![each(at)]);
            let all = match self.r.below(10) {
                0 => Stmt::PutInt(counts, vec![each(at)], value),
                _ => Stmt::Atomic(counts, vec![each(at)], Combine::Add, value),
            };
            let below = Pred::Index(each(at), Cmp::Lt, Ix::Const(bins));
            self.p.body.push(Stmt::When(below, vec![all]));
        }
    }

    /// Some of an output, from a position on.
    pub(crate) fn append(&mut self) {
        let (n, x, tile) = self.integers();
        let rows = self.extent();
        let y = self.global(Element::S32, std::slice::from_ref(&rows), true);
        self.p.globals[1].special = self.r.chance(90);
        let position = match self.r.below(6) {
            0 => self.extent(),
            1 => Ix::Data(x, vec![tile.clone()], false),
            2 => Ix::Data(x, vec![Ix::Thread], false),
            3 => Ix::Const(self.r.below(9) as i64),
            _ => Ix::Data(x, vec![zero()], false),
        };
        let i = self.own(&tile);
        if self.r.chance(50) {
            let from = self.flat(x, 1, tile.clone());
            let to = crate::program::Share {
                part: Some([vec![position], vec![n]]),
                ..Self::like(&from, y, tile)
            };
            return self.p.body.push(Stmt::Copy(from, to));
        }
        let put = Stmt::PutInt(
            y,
            vec![sum(position, i.clone())],
            Int::Element(x, vec![i.clone()]),
        );
        self.p.body.push(match self.r.below(3) {
            0 => put,
            1 => {
                let step = self.r.pick(&[self.t(), 1, 3 * self.t()]);
                let at = Ix::Linear(
                    vec![
                        (4 * self.t(), tile),
                        (step, Ix::Counter(0)),
                        (1, Ix::Thread),
                    ],
                    0,
                );
                Stmt::Loop {
                    start: 0,
                    step: 1,
                    limit: Ix::Const(self.r.pick(&[1, 3, 4, 5])),
                    body: vec![Stmt::PutInt(y, vec![at], Int::Const(7))],
                }
            }
            _ => Stmt::When(Pred::Index(i, Cmp::Lt, n), vec![put]),
        });
    }

    /// Barriers and accesses of shared memory on paths that data decide.
    pub(crate) fn by_data(&mut self) {
        let (n, x, tile) = self.integers();
        let y = self.global(Element::S32, std::slice::from_ref(&n), true);
        let t = self.t();
        let s = self.shared(Element::S32, format!("{t}:1"));
        let mine = self.right(&tile);
        let total = self.name();
        self.p.body.push(Stmt::Let(total, Int::Const(0)));
        self.p
            .body
            .push(Stmt::PutInt(s, vec![Ix::Thread], Int::Const(3)));
        self.p.body.push(Stmt::Barrier);
        let place = self.r.pick(&[
            Ix::Counter(0),
            Ix::Counter(0),
            sum(tile.clone(), Ix::Counter(0)),
            tile,
            mine.clone(),
        ]);
        let what = Ix::Data(x, vec![place], self.r.chance(50));
        let p = Pred::Index(
            what,
            expressions::cmp(&mut self.r),
            Ix::Const(self.r.below(9) as i64),
        );
        let neighbour = Ix::Rem(
            Box::new(sum(Ix::Thread, Ix::Const(self.r.pick(&[0, 1, 1])))),
            t,
        );
        let read = Int::Binary(
            IntOp::Add,
            true,
            Box::new([Int::Variable(total), Int::Element(s, vec![neighbour])]),
        );
        let all = [
            Stmt::Set(total, read),
            Stmt::PutInt(s, vec![Ix::Thread], Int::Variable(total)),
            Stmt::Barrier,
            Stmt::Barrier,
        ];
        let some = |m: &mut Self| -> Vec<Stmt> {
            let n = m.r.below(4);
            (0..n).map(|_| m.r.pick(&all)).collect()
        };
        let (then, other) = (some(self), some(self));
        let mut body = some(self);
        body.push(Stmt::WhenElse(p, then, other));
        body.extend(some(self));
        let limit = self.r.pick(&[
            Ix::Const(3),
            Ix::Const(5),
            Ix::Clamp(Box::new(Ix::Data(x, vec![zero()], true)), 0, 6),
        ]);
        self.p.body.push(Stmt::Loop {
            start: 0,
            step: 1,
            limit,
            body,
        });
        self.p
            .body
            .push(Stmt::PutInt(y, vec![mine], Int::Variable(total)));
    }
}
