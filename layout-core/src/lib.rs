//! The layout algebra of Tilewright.
#![no_std]
#![forbid(unsafe_code)]

pub mod banks;
mod coalesce;
mod complement;
mod composition;
pub mod derive;
mod divide;
mod error;
pub mod f2;
mod int_tuple;
mod layout;
mod message;
mod modes;
mod parse;
mod profile;
pub mod proof;
mod swizzle;
mod swizzled;

pub use coalesce::{coalesce, coalesce_by_profile, filter, filter_zeros};
pub use complement::complement;
pub use composition::{Tiler, composition, composition_by_mode, composition_strict};
pub use divide::{Divided, flat_divide, logical_divide, tiled_divide, zipped_divide};
pub use error::{LayoutError, expect};
pub use int_tuple::IntTuple;
pub use layout::Layout;
pub use message::Message;
pub use modes::SEARCH_LIMIT;
pub use parse::{ParseError, ParseErrorKind, expect_parse};
pub use profile::{MAX_DEPTH, MAX_MODES};
pub use swizzle::Swizzle;
pub use swizzled::Swizzled;
