//! What macro expansions call. Not part of the interface: it may change in any release.

use crate::affine::SwizzledAffine;
use crate::banks::Wavefronts;
use crate::derive::{Pattern, Tile, recount};
use crate::error::expect;
use crate::function::Function;
use crate::layout::Layout;
use crate::message::{Message, fail};
use crate::parse::expect_parse;
use crate::proof::injective;
use crate::space::single;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;
use crate::typed::LeftOperand;

/// A constant in `layout!`: a `Layout`, a `Swizzled`, or (on the left) a `Swizzle`.
#[derive(Clone, Copy)]
pub struct LayoutOperand<T>(pub T);

impl LayoutOperand<Layout> {
    /// The operand as a layout.
    pub const fn layout(self) -> Swizzled {
        Swizzled::plain(self.0)
    }

    /// `operand ∘ inner`, or a compile error.
    #[track_caller]
    pub const fn after(self, inner: Swizzled) -> Swizzled {
        expect(LeftOperand::Layout(&Swizzled::plain(self.0)).compose(&inner))
    }
}

impl LayoutOperand<Swizzled> {
    /// The operand as a layout.
    pub const fn layout(self) -> Swizzled {
        self.0
    }

    /// `operand ∘ inner`, or a compile error.
    #[track_caller]
    pub const fn after(self, inner: Swizzled) -> Swizzled {
        expect(LeftOperand::Layout(&self.0).compose(&inner))
    }
}

impl LayoutOperand<Swizzle> {
    /// `operand ∘ inner`, or a compile error.
    #[track_caller]
    pub const fn after(self, inner: Swizzled) -> Swizzled {
        expect(LeftOperand::Swizzle(self.0).compose(&inner))
    }
}

/// `offset o inner`, or a compile error.
#[track_caller]
pub const fn offset(offset: i64, inner: Swizzled) -> Swizzled {
    let composed = Function::Offset(offset).compose(&Function::Layout(inner));
    match composed {
        Ok(composed) => expect(single(&composed)),
        Err(error) => expect(Err(error)),
    }
}

/// The layout with named strides that `text` says, which a macro has composed and printed.
#[track_caller]
pub const fn swizzled_affine(text: &str) -> SwizzledAffine {
    match expect_parse(Function::parse(text)) {
        Function::Affine(layout) => layout,
        _ => panic!("a composition of `layout!` has no stride names"),
    }
}

/// Counts the wavefronts of one access again, from the addresses, and refuses more than `expected`.
#[track_caller]
pub const fn verify_access(tile: Tile, pattern: &Pattern, layout: &Swizzled, expected: u32) {
    let Ok(Wavefronts { wavefronts, .. }) = recount(tile, pattern, layout) else {
        panic!("a derived layout gives misaligned addresses")
    };
    if wavefronts != expected {
        fail(
            &Message::new()
                .text("a derived layout takes ")
                .int(wavefronts as i64)
                .text(" wavefronts where ")
                .int(expected as i64)
                .text(" were derived"),
        );
    }
}

/// Refuses a derived layout that sends two elements of the tile to one place.
#[track_caller]
pub const fn verify_injective(layout: &Swizzled) {
    assert!(
        injective(layout).is_ok(),
        "a derived layout sends two elements of its tile to one place"
    );
}
