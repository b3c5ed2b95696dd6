//! Functions of the values of fragments, element by element.

use super::Fragment;
use super::holders::Holders;
use crate::index::Expr;
use crate::ir::{Element, Kernel};
use crate::value::{F32, Kind, Value};
use crate::view::ViewError;

impl Fragment {
    /// The values of its registers as typed values, if the type is that of its elements.
    pub(super) fn typed<T: Kind>(
        &self,
        k: &Kernel,
        operation: &'static str,
    ) -> Result<Vec<Value<T>>, ViewError> {
        self.own(k)?;
        let fits = T::ELEMENT == self.element;
        if fits && self.registers.iter().all(|r| r.class == T::CLASS) {
            return Ok(self.registers.iter().map(|&r| Value::held(k, r)).collect());
        }
        let accepted = match self.element {
            Element::F32 => "its values are `F32`",
            Element::F64 => "its values are `F64` (`map_words`)",
            Element::S32 => "its values are `S32` (`map_words`)",
            Element::F16 => "its words are `F16x2` (`map_words`), or convert it to f32",
            Element::Bf16 => "its words are `Bf16x2` (`map_words`), or convert it to f32",
            Element::S8 | Element::E4m3 | Element::E5m2 => "convert it to f32",
        };
        Err(self.refuse(operation, accepted.to_owned()))
    }

    /// The same tile with the values that `make` gives.
    fn with<T: Kind>(
        &self,
        k: &mut Kernel,
        make: impl FnOnce(&mut Kernel) -> Result<Vec<Value<T>>, ViewError>,
    ) -> Result<Self, ViewError> {
        let before = k.made(T::CLASS);
        let mut registers = Vec::new();
        for value in make(k)? {
            let register = value.register(k);
            // A value that was there before, or comes twice, gets a register of its own: each value of a fragment is set apart from all else.
            let own = register.id >= before && !registers.contains(&register);
            registers.push(if own {
                register
            } else {
                value.copied(k).register(k)
            });
        }
        Ok(Self {
            registers,
            origin: k.here(),
            ..self.clone()
        })
    }

    /// This thread's values, as they are now: for what goes beyond [`Fragment::map`], as a scan along a row. Words of 16-bit elements are pairs.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::value::F32;
    /// use layout_core::Layout;
    ///
    /// // The greatest of a thread's four elements, and the first that is as great.
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, thread)?;
    /// let values: Vec<F32> = k.load_fragment(&x)?.thread_values(&mut k)?;
    /// let (mut most, mut at) = (values[0], F32::from(0.0));
    /// for (i, value) in values.into_iter().enumerate().skip(1) {
    ///     let greater = value.gt(&mut k, most);
    ///     at = greater.select(&mut k, (i as f32).into(), at);
    ///     most = greater.select(&mut k, value, most);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for a type that the values do not have.
    #[track_caller]
    pub fn thread_values<T: Kind>(&self, k: &mut Kernel) -> Result<Vec<Value<T>>, ViewError> {
        k.at_line();
        let values = self.typed(k, "values")?;
        // Each in a register of its own: the fragment may be set again.
        Ok(values.into_iter().map(|v: Value<T>| v.copied(k)).collect())
    }

    /// `f` of each element of a fragment of f32.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let relu = sums.map(&mut k, |k, x| x.max(k, 0.0))?;
    /// assert_eq!(relu.shape(), sums.shape());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than f32: see [`Fragment::map_words`] and [`Fragment::convert`].
    #[track_caller]
    pub fn map(
        &self,
        k: &mut Kernel,
        f: impl FnMut(&mut Kernel, F32) -> F32,
    ) -> Result<Self, ViewError> {
        k.at_line();
        self.map_words(k, f)
    }

    /// `f` of each word of a fragment, as a value of its type: `F16x2` of f16, two elements at once, `Bf16x2` of bf16, `S32` of s32, `F64` of f64.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::value::F16x2;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let powers = sums.map_words(&mut k, |k, pair: F16x2| pair.exp2(k))?;
    /// assert_eq!(powers.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] if the type is not that of its elements.
    #[track_caller]
    pub fn map_words<T: Kind>(
        &self,
        k: &mut Kernel,
        mut f: impl FnMut(&mut Kernel, Value<T>) -> Value<T>,
    ) -> Result<Self, ViewError> {
        k.at_line();
        let values = self.typed(k, "a map")?;
        self.with(k, |k| Ok(values.into_iter().map(|v| f(k, v)).collect()))
    }

    /// `f` of each element of a fragment of f32 and its coordinates in the tile: masks, positions.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let scores = k.accumulators(&mma, [16, 8], lane)?;
    /// // Nothing above the diagonal.
    /// let causal = scores.map_at(&mut k, |k, x, [row, column]| {
    ///     Predicate::of(k, column, Cmp::Le, row).select(k, x, f32::NEG_INFINITY)
    /// })?;
    /// assert_eq!(causal.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than f32, or a tile that has not two modes.
    #[track_caller]
    pub fn map_at(
        &self,
        k: &mut Kernel,
        mut f: impl FnMut(&mut Kernel, F32, [Expr; 2]) -> F32,
    ) -> Result<Self, ViewError> {
        k.at_line();
        if self.shape.len() != 2 {
            return Err(self.refuse(
                "a map with coordinates",
                "it takes a tile of two modes".to_owned(),
            ));
        }
        let values = self.typed(k, "a map")?.into_iter().enumerate();
        self.with(k, |k| {
            let of = |(i, value)| {
                let at = self.coordinates(k, i)?;
                Ok(f(k, value, at))
            };
            values.map(of).collect()
        })
    }

    /// `f` of each element of this fragment and the element of another one at the same coordinates. Along a mode in which the other one has
    /// extent 1, it is broadcast: [M, 1] over the columns, [1, N] over the rows.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let scores = k.accumulators(&mma, [16, 8], lane)?;
    /// let maxima = scores.reduce(&mut k, 1, Combine::Max)?;
    /// let shifted = scores.zip(&mut k, &maxima, |k, x, max| x.sub(k, max))?;
    /// assert_eq!(shifted.shape(), [16, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than f32, for shapes that do not fit, and if a thread does not hold what it needs of the other
    /// fragment.
    #[track_caller]
    pub fn zip(
        &self,
        k: &mut Kernel,
        other: &Fragment,
        f: impl FnMut(&mut Kernel, F32, F32) -> F32,
    ) -> Result<Self, ViewError> {
        k.at_line();
        self.zip_words(k, other, f)
    }

    /// [`Fragment::zip`] of words as values of their type ([`Fragment::map_words`]). Words of two elements are not broadcast.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F16x2;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let (a, b) = (k.accumulators(&mma, [16, 8], lane)?, k.accumulators(&mma, [16, 8], lane)?);
    /// let sums = a.zip_words(&mut k, &b, |k, a: F16x2, b| a.add(k, b))?;
    /// assert_eq!(sums.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::zip`].
    #[track_caller]
    pub fn zip_words<T: Kind>(
        &self,
        k: &mut Kernel,
        other: &Fragment,
        mut f: impl FnMut(&mut Kernel, Value<T>, Value<T>) -> Value<T>,
    ) -> Result<Self, ViewError> {
        k.at_line();
        let mine = self.typed(k, "a zip of fragments")?;
        let theirs = self.matched(k, other)?;
        let pairs = mine.into_iter().zip(theirs);
        self.with(k, |k| Ok(pairs.map(|(a, b)| f(k, a, b)).collect()))
    }

    /// [`Fragment::zip`] with two others: `f` of three elements at the same coordinates, so that products are added with one rounding (`fma`).
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let (scale, shift) = (sums.reduce(&mut k, 1, Combine::Max)?, sums.reduce(&mut k, 1, Combine::Min)?);
    /// let scaled = sums.zip3(&mut k, [&scale, &shift], |k, x, scale, shift| x.fma(k, scale, shift))?;
    /// assert_eq!(scaled.shape(), [16, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::zip`].
    #[track_caller]
    pub fn zip3(
        &self,
        k: &mut Kernel,
        others: [&Fragment; 2],
        f: impl FnMut(&mut Kernel, F32, F32, F32) -> F32,
    ) -> Result<Self, ViewError> {
        k.at_line();
        self.zip3_words(k, others, f)
    }

    /// [`Fragment::zip3`] of words as values of their type ([`Fragment::map_words`]). Words of two elements are not broadcast.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F16x2;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let [a, b, c] = [(); 3].map(|()| k.accumulators(&mma, [16, 8], lane));
    /// let (a, b, c) = (a?, b?, c?);
    /// let sums = a.zip3_words(&mut k, [&b, &c], |k, a: F16x2, b, c| a.fma(k, b, c))?;
    /// assert_eq!(sums.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::zip`].
    #[track_caller]
    pub fn zip3_words<T: Kind>(
        &self,
        k: &mut Kernel,
        [b, c]: [&Fragment; 2],
        mut f: impl FnMut(&mut Kernel, Value<T>, Value<T>, Value<T>) -> Value<T>,
    ) -> Result<Self, ViewError> {
        k.at_line();
        let (of_b, of_c) = (self.matched(k, b)?, self.matched(k, c)?);
        let mine = self.typed(k, "a zip of fragments")?;
        let all = mine.into_iter().zip(of_b).zip(of_c);
        self.with(k, |k| Ok(all.map(|((a, b), c)| f(k, a, b, c)).collect()))
    }

    /// For each of its words the word of another fragment at the same coordinates.
    fn matched<T: Kind>(&self, k: &Kernel, other: &Fragment) -> Result<Vec<Value<T>>, ViewError> {
        let theirs = other.typed(k, "a zip of fragments")?;
        let at = self.values_of(other)?;
        Ok(at.into_iter().map(|at| theirs[at]).collect())
    }

    /// For each of its words the word of another fragment at the same coordinates, 0 along the modes in which that one has extent 1.
    fn values_of(&self, other: &Fragment) -> Result<Vec<usize>, ViewError> {
        let refuse = |reason: String| self.refuse("a zip of fragments", reason);
        let fits = |(&mine, &theirs): (&i64, &i64)| theirs == mine || theirs == 1;
        let modes = self.shape.len();
        if other.shape.len() != modes || !self.shape.iter().zip(&other.shape).all(fits) {
            return Err(refuse(format!(
                "the other is {}; it has the same extents, or 1",
                other.describe()
            )));
        }
        if self.thread != other.thread {
            return Err(refuse(
                "the other is shared out by another number of the thread".to_owned(),
            ));
        }
        if self.each > 1 && self.shape != other.shape {
            return Err(refuse(
                "convert both to f32 to broadcast one of them".to_owned(),
            ));
        }
        let mine = Holders::by_mode(&self.shape, &self.tv)?;
        let theirs = Holders::by_mode(&other.shape, &other.tv)?;
        let broadcast = |mode: usize| other.shape[mode] == 1;
        let threads = mine[0].threads.len();
        if theirs[0].threads.len() != threads {
            return Err(refuse(
                "the other is shared out among another number of threads".to_owned(),
            ));
        }
        // Value by value for the first thread; what threads add is the same on both sides.
        let same = (0..threads).all(|t| {
            (0..modes).all(|m| {
                broadcast(m)
                    || theirs[m].threads[t] - theirs[m].threads[0]
                        == mine[m].threads[t] - mine[m].threads[0]
            })
        });
        let find = |v: usize| {
            (0..theirs[0].values.len()).find(|&u| {
                (0..modes).all(|m| broadcast(m) || theirs[m].at(0, u) == mine[m].at(0, v))
            })
        };
        let found: Option<Vec<usize>> = (0..mine[0].values.len())
            .filter(|_| same)
            .map(find)
            .collect();
        let found = found.filter(|all| !all.is_empty());
        let words = found.and_then(|all| {
            all.chunks(self.each)
                .map(|word| {
                    let whole = word[0].is_multiple_of(self.each)
                        && (word[0]..).zip(word).all(|(i, &u)| i == u);
                    whole.then(|| word[0] / self.each)
                })
                .collect()
        });
        words.ok_or_else(|| {
            refuse(format!(
                "a thread does not hold what it needs of {}: bring one to the layout of the other",
                other.describe()
            ))
        })
    }

    /// Lets each register of a fragment hold `f` of what it held: state that a loop carries. Of f32.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// sums.update(&mut k, |k, old| old.mul(k, 0.5))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than f32.
    #[track_caller]
    pub fn update(
        &self,
        k: &mut Kernel,
        f: impl FnMut(&mut Kernel, F32) -> F32,
    ) -> Result<(), ViewError> {
        k.at_line();
        let new = self.map(k, f)?;
        self.assign(k, &new)
    }

    /// [`Fragment::update`] with the elements of another fragment at the same coordinates, broadcast as by [`Fragment::zip`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let scales = sums.reduce(&mut k, 1, Combine::Max)?;
    /// sums.update_with(&mut k, &scales, |k, old, scale| old.mul(k, scale))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::zip`].
    #[track_caller]
    pub fn update_with(
        &self,
        k: &mut Kernel,
        other: &Fragment,
        f: impl FnMut(&mut Kernel, F32, F32) -> F32,
    ) -> Result<(), ViewError> {
        k.at_line();
        let new = self.zip(k, other, f)?;
        self.assign(k, &new)
    }

    /// [`Fragment::update`] with the elements of two other fragments at the same coordinates: a sum of products that a loop carries.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let [sums, a, b] = [(); 3].map(|()| k.accumulators(&mma, [16, 8], lane));
    /// let (sums, a, b) = (sums?, a?, b?);
    /// sums.update_with_both(&mut k, [&a, &b], |k, sum, a, b| a.fma(k, b, sum))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::zip`].
    #[track_caller]
    pub fn update_with_both(
        &self,
        k: &mut Kernel,
        others: [&Fragment; 2],
        f: impl FnMut(&mut Kernel, F32, F32, F32) -> F32,
    ) -> Result<(), ViewError> {
        k.at_line();
        let new = self.zip3(k, others, f)?;
        self.assign(k, &new)
    }

    /// Lets its registers hold what another fragment of the same shape holds.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let (old, new) = (k.accumulators(&mma, [16, 8], lane)?, k.accumulators(&mma, [16, 8], lane)?);
    /// old.assign(&mut k, &new)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] if the other is of another element, shape or layout.
    #[track_caller]
    pub fn assign(&self, k: &mut Kernel, new: &Fragment) -> Result<(), ViewError> {
        k.at_line();
        let same = new.element == self.element && new.shape == self.shape && new.each == self.each;
        let registers = new
            .in_order_of(&self.tv)
            .filter(|_| same && new.thread == self.thread);
        let Some(registers) = registers else {
            let reason = format!("{} is of another element, shape or layout", new.describe());
            return Err(self.refuse("an assignment", reason));
        };
        self.own(k)?;
        new.own(k)?;
        for (&to, from) in self.registers.iter().zip(registers) {
            if to != from {
                k.set(super::memory::type_of(to.class), to, from);
            }
        }
        k.sets(&self.registers);
        Ok(())
    }
}
