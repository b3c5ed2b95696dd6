//! Maps between spaces as values.

use core::fmt;
use core::marker::PhantomData;

use super::{Byte, Element, ElementType, Meets, Space};
use crate::error::{LayoutError, attempt};
use crate::function::Function;
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// A place in space `S`.
///
/// ```
/// use layout_core::space::{At, Lane};
/// let lane: At<Lane> = At::new(5);
/// assert_eq!(format!("{lane:?}"), "lane 5");
/// ```
pub struct At<S>(i64, PhantomData<fn() -> S>);

impl<S: Space> At<S> {
    /// Place number `i`.
    ///
    /// ```
    /// use layout_core::space::{At, Byte};
    /// assert_eq!(At::<Byte>::new(64), At::new(64));
    /// ```
    pub const fn new(i: i64) -> Self {
        Self(i, PhantomData)
    }

    /// The number.
    ///
    /// ```
    /// use layout_core::space::{At, Byte};
    /// assert_eq!(At::<Byte>::new(64).get(), 64);
    /// ```
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl<S> Clone for At<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for At<S> {}

impl<S> PartialEq for At<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<S> Eq for At<S> {}

impl<S: Space> fmt::Debug for At<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", S::NAME, self.0)
    }
}

/// A swizzle of offsets in unit `U`: [`Byte`], or [`Element<T>`]. `UnitSwizzle<Byte>` and `UnitSwizzle<Element<F16>>` are different
/// types; the first's `Sw<3,4,3>` is the second's `Sw<3,3,3>`.
///
/// ```
/// use layout_core::space::{Byte, Element, F16, UnitSwizzle};
/// let bytes = UnitSwizzle::<Byte>::new(3, 4, 3).unwrap();
/// let halves: UnitSwizzle<Element<F16>> = bytes.to_elements().unwrap();
/// assert_eq!(halves.swizzle().to_string(), "Sw<3,3,3>");
/// ```
pub struct UnitSwizzle<U>(Swizzle, PhantomData<fn() -> U>);

impl<U> Clone for UnitSwizzle<U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U> Copy for UnitSwizzle<U> {}

impl<U: Space> UnitSwizzle<U> {
    /// `Sw<b,m,s>` on offsets in unit `U`.
    ///
    /// ```
    /// use layout_core::space::{Byte, UnitSwizzle};
    /// assert_eq!(UnitSwizzle::<Byte>::new(2, 4, 3).unwrap().swizzle().b(), 2);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Swizzle::new`].
    pub const fn new(b: u32, m: u32, s: i32) -> Result<Self, LayoutError> {
        Ok(Self(attempt!(Swizzle::new(b, m, s)), PhantomData))
    }

    /// The swizzle without its unit.
    ///
    /// ```
    /// use layout_core::{Swizzle, space::{Byte, UnitSwizzle}};
    /// let bytes = UnitSwizzle::<Byte>::new(2, 4, 3).unwrap();
    /// assert_eq!(bytes.swizzle(), Swizzle::new(2, 4, 3).unwrap());
    /// ```
    pub const fn swizzle(&self) -> Swizzle {
        self.0
    }
}

impl<T: ElementType> UnitSwizzle<Element<T>> {
    /// The same swizzle on byte offsets.
    ///
    /// ```
    /// use layout_core::space::{Element, F32, UnitSwizzle};
    /// let floats = UnitSwizzle::<Element<F32>>::new(3, 2, 3).unwrap();
    /// assert_eq!(floats.to_bytes().unwrap().swizzle().to_string(), "Sw<3,4,3>");
    /// ```
    ///
    /// # Errors
    ///
    /// An element whose width is not a power of two.
    pub const fn to_bytes(&self) -> Result<UnitSwizzle<Byte>, LayoutError> {
        Ok(UnitSwizzle(
            attempt!(self.0.downcast(T::BYTES)),
            PhantomData,
        ))
    }
}

impl UnitSwizzle<Byte> {
    /// The same swizzle on offsets of elements.
    ///
    /// ```
    /// use layout_core::space::{B128, Byte, F32, UnitSwizzle};
    /// let bytes = UnitSwizzle::<Byte>::new(3, 4, 3).unwrap();
    /// assert_eq!(bytes.to_elements::<B128>().unwrap().swizzle().to_string(), "Sw<3,0,3>");
    /// let within = UnitSwizzle::<Byte>::new(3, 1, 3).unwrap();
    /// assert!(within.to_elements::<F32>().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::SwizzleUnit`] if the swizzle moves bytes within an element.
    pub const fn to_elements<T: ElementType>(
        &self,
    ) -> Result<UnitSwizzle<Element<T>>, LayoutError> {
        Ok(UnitSwizzle(
            attempt!(in_elements(&self.0, T::BYTES)),
            PhantomData,
        ))
    }
}

/// `swizzle` in units of `bytes`, refusing one that acts inside the unit.
const fn in_elements(swizzle: &Swizzle, bytes: i64) -> Result<Swizzle, LayoutError> {
    let upcast = attempt!(swizzle.upcast(bytes));
    if upcast.b() == swizzle.b() {
        Ok(upcast)
    } else {
        Err(LayoutError::SwizzleUnit {
            operation: "bytes to elements",
            b: swizzle.b(),
            m: swizzle.m(),
            s: swizzle.s(),
            ratio: bytes,
        })
    }
}

/// A layout with its spaces: a function from `From` to `To`.
///
/// ```
/// use layout_core::{Layout, space::{At, Byte, Lane, Map}};
/// let rows: Map<Lane, Byte> = Map::plain(Layout::parse("32:128").unwrap());
/// assert_eq!(rows.apply(At::new(3)), At::new(384));
/// assert_eq!(format!("{rows:?}"), "lane -> byte: 32:128");
/// ```
pub struct Map<From, To> {
    layout: Swizzled,
    spaces: PhantomData<fn(From) -> To>,
}

impl<From, To> Clone for Map<From, To> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<From, To> Copy for Map<From, To> {}

impl<From, To> PartialEq for Map<From, To> {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout
    }
}

impl<From, To> Eq for Map<From, To> {}

impl<From: Space, To: Space> fmt::Debug for Map<From, To> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", From::NAME, To::NAME, self.layout)
    }
}

impl<From: Space, To: Space> Map<From, To> {
    /// The layout as a map from `From` to `To`.
    ///
    /// ```
    /// use layout_core::{Swizzled, space::{Byte, Lane, Map}};
    /// let map: Map<Lane, Byte> = Map::new(Swizzled::parse("Sw<3,4,3> o 32:128").unwrap());
    /// assert_eq!(map.layout().swizzle().b(), 3);
    /// ```
    pub const fn new(layout: Swizzled) -> Self {
        Self {
            layout,
            spaces: PhantomData,
        }
    }

    /// The plain layout as a map from `From` to `To`.
    ///
    /// ```
    /// use layout_core::{Layout, space::{Byte, Lane, Map}};
    /// let map: Map<Lane, Byte> = Map::plain(Layout::parse("32:128").unwrap());
    /// assert_eq!(map.layout().to_string(), "32:128");
    /// ```
    pub const fn plain(layout: Layout) -> Self {
        Self::new(Swizzled::plain(layout))
    }

    /// The layout without its spaces.
    ///
    /// ```
    /// use layout_core::{Layout, space::{Byte, Lane, Map}};
    /// let map: Map<Lane, Byte> = Map::plain(Layout::parse("32:4").unwrap());
    /// assert_eq!(map.layout().size(), 32);
    /// ```
    pub const fn layout(&self) -> Swizzled {
        self.layout
    }

    /// The image of `at`.
    ///
    /// ```
    /// use layout_core::{Layout, space::{At, Byte, Lane, Map}};
    /// let map: Map<Lane, Byte> = Map::plain(Layout::parse("32:4").unwrap());
    /// assert_eq!(map.apply(At::new(5)).get(), 20);
    /// ```
    pub const fn apply(&self, at: At<From>) -> At<To> {
        At::new(self.layout.index(at.0))
    }

    /// `self ∘ inner`: where `inner` ends, `self` must begin. It is [`Function::compose`], which must have one swizzled layout
    /// as its result.
    ///
    /// ```
    /// use layout_core::Layout;
    /// use layout_core::space::{Byte, Lane, Map, Thread};
    /// let lanes: Map<Thread, Lane> = Map::plain(Layout::parse("(32,4):(1,0)").unwrap());
    /// let bytes: Map<Lane, Byte> = Map::plain(Layout::parse("32:16").unwrap());
    /// assert_eq!(bytes.compose(&lanes).unwrap().layout().to_string(), "(32,4):(16,0)");
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Function::compose`]; [`LayoutError::SeveralSteps`] where the composition is not one swizzled layout.
    pub fn compose<Start: Space, Middle: Space + Meets<From>>(
        &self,
        inner: &Map<Start, Middle>,
    ) -> Result<Map<Start, To>, LayoutError> {
        let composed = Function::Layout(self.layout).compose(&Function::Layout(inner.layout))?;
        Ok(Map::new(attempt!(single(&composed))))
    }

    /// `swizzle ∘ self`: the swizzle must have the unit of the map's result.
    ///
    /// ```
    /// use layout_core::Layout;
    /// use layout_core::space::{Byte, Lane, Map, UnitSwizzle};
    /// let rows: Map<Lane, Byte> = Map::plain(Layout::parse("16:128").unwrap());
    /// let swizzled = rows.swizzle(UnitSwizzle::new(3, 4, 3).unwrap()).unwrap();
    /// assert_eq!(swizzled.layout().to_string(), "Sw<3,4,3> o 16:128");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`compose`](Self::compose).
    pub const fn swizzle(&self, swizzle: UnitSwizzle<To>) -> Result<Self, LayoutError> {
        let composed = Function::Swizzle(swizzle.0).compose(&Function::Layout(self.layout));
        Ok(Self::new(attempt!(single(&attempt!(composed)))))
    }
}

/// The one swizzled layout that a composition is.
pub(crate) const fn single(composed: &Function) -> Result<Swizzled, LayoutError> {
    match composed.as_layout() {
        Some(layout) => Ok(layout),
        None => Err(LayoutError::SeveralSteps),
    }
}

impl<From: Space, T: ElementType> Map<From, Element<T>> {
    /// The same places in bytes: each offset times the element's width (its first byte), the swizzle's `M` moved up.
    ///
    /// ```
    /// use layout_core::{Swizzled, space::{Element, F16, Lane, Map}};
    /// let halves: Map<Lane, Element<F16>> = Map::new(Swizzled::parse("Sw<3,3,3> o 32:64").unwrap());
    /// assert_eq!(halves.to_bytes().unwrap().layout().to_string(), "Sw<3,4,3> o 32:128");
    /// ```
    ///
    /// # Errors
    ///
    /// Offsets that do not fit; a swizzle with an element whose width is not a power of two.
    pub const fn to_bytes(&self) -> Result<Map<From, Byte>, LayoutError> {
        let swizzle = attempt!(self.layout.swizzle().downcast(T::BYTES));
        let scaled = attempt!(self.layout.multiplied(T::BYTES, "bytes of elements"));
        Ok(Map::new(attempt!(Swizzled::new(
            swizzle,
            scaled.offset(),
            scaled.layout()
        ))))
    }
}

impl<From: Space> Map<From, Byte> {
    /// The same places in elements.
    ///
    /// ```
    /// use layout_core::{Layout, space::{Byte, F16, F32, Lane, Map}};
    /// let bytes: Map<Lane, Byte> = Map::plain(Layout::parse("32:6").unwrap());
    /// assert_eq!(bytes.to_elements::<F16>().unwrap().layout().to_string(), "32:3");
    /// assert_eq!(bytes.to_elements::<F32>().unwrap_err().code(), "not_divisible");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::StrideNotDivisible`] for a stride inside an element, [`LayoutError::OffsetNotDivisible`] for an offset, [`LayoutError::SwizzleUnit`] for a swizzle
    /// inside one.
    pub const fn to_elements<T: ElementType>(&self) -> Result<Map<From, Element<T>>, LayoutError> {
        let mut layout = self.layout.layout();
        let mut i = 0;
        while i < layout.leaves() {
            attempt!(divides(i, layout.step(i), T::BYTES));
            layout.stride[i][0] /= T::BYTES;
            i += 1;
        }
        let offset = self.layout.offset();
        if offset % T::BYTES != 0 {
            return Err(LayoutError::OffsetNotDivisible {
                operation: "bytes to elements",
                offset,
                divisor: T::BYTES,
            });
        }
        let swizzle = attempt!(in_elements(&self.layout.swizzle(), T::BYTES));
        let offset = self.layout.offset() / T::BYTES;
        Ok(Map::new(attempt!(Swizzled::new(swizzle, offset, layout))))
    }
}

const fn divides(mode: usize, stride: i64, divisor: i64) -> Result<(), LayoutError> {
    if stride % divisor == 0 {
        Ok(())
    } else {
        Err(LayoutError::StrideNotDivisible {
            operation: "bytes to elements",
            mode,
            stride,
            divisor,
        })
    }
}
